#pragma once

// Internal to data/lerobot: statistics of a camera's frames.
#include <cstdint>
#include <nlohmann/json.hpp>

#include "data/image/video_frame.h"

namespace troupe::data {

/// Sums of all pixels of a camera, from which LeRobot's image statistics follow.
struct ImageSums {
  /// Per channel, of values in [0, 1]: sum, sum of squares, least and greatest.
  double sum[3] = {}, square[3] = {};
  double low[3] = {1, 1, 1}, high[3] = {0, 0, 0};
  std::int64_t pixels = 0, frames = 0;
  /// Adds every pixel of a frame.
  void add(const Rgb8View& image);
  /// {min, max, mean, std, count}, of shape (3, 1, 1), values 0..1; count is the number of frames.
  nlohmann::ordered_json to_json() const;
};

}  // namespace troupe::data
