#pragma once

// Internal to data/lerobot: statistics of a camera's pictures.
#include <cstdint>
#include <nlohmann/json.hpp>

#include "data/image/video_frame.h"

namespace troupe {

/// Sums of all pixels of a camera, from which LeRobot's image statistics follow.
struct PictureSums {
  double sum[3] = {}, square[3] = {};
  double low[3] = {1, 1, 1}, high[3] = {0, 0, 0};
  std::int64_t pixels = 0, frames = 0;
  void add(const Rgb8View& picture);
  nlohmann::ordered_json to_json() const;  ///< shape (3, 1, 1), values 0..1
};

}  // namespace troupe
