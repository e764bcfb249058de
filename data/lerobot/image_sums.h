#pragma once

// Internal to data/lerobot: statistics of a camera's frames.
#include <cstdint>
#include <nlohmann/json.hpp>

#include "image/video_frame.h"

namespace troupe::data {

/// Counts of all pixels of a camera, from which LeRobot's image statistics follow.
struct ImageSums {
  /// How often each value of a channel occurs.
  std::int64_t counts[3][256] = {};
  std::int64_t pixels = 0, frames = 0;
  /// Adds every pixel of a frame.
  void add(const Rgb8View& image);
  /// {min, max, mean, std, count} and kStatedQuantiles, of shape (3, 1, 1), values 0..1; count is the number of frames.
  nlohmann::ordered_json to_json() const;
};

}  // namespace troupe::data
