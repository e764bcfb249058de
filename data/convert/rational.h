#pragma once

#include <cstdint>

namespace troupe {

/// A frame rate as a fraction, so that times are rounded once.
struct FrameRate {
  std::int64_t num = 0, den = 1;

  /// The nearest fraction with a small denominator: 29.97 is 2997/100, 30/1.001 is 30000/1001.
  static FrameRate of(double fps);
  /// Seconds at which picture `frame` is shown: frame * den / num, rounded once.
  double seconds(std::int64_t frame) const { return static_cast<double>(frame * den) / static_cast<double>(num); }
};

}  // namespace troupe
