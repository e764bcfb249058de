#pragma once

#include <cstdint>

namespace troupe::data {

/// A frame rate as a fraction, so that times are rounded once.
struct FrameRate {
  /// Frames per second are num / den; num 0: not set.
  std::int64_t num = 0, den = 1;

  /// The nearest fraction with a small denominator: 29.97 is 2997/100, 30/1.001 is 30000/1001.
  /// Denominators go up to 100,000 (av_d2q).
  static FrameRate of(double fps);
  /// Seconds at which frame `frame` is shown: frame * den / num, rounded once.
  double seconds(std::int64_t frame) const { return static_cast<double>(frame * den) / static_cast<double>(num); }
};

}  // namespace troupe::data
