#pragma once

#include <cstdint>
#include <vector>

namespace troupe::image {

/// Source columns (or rows) that make one output column (or row), and their float32 weights, which sum to 1.
/// The weights are those in AxisWeights::weights[weight, weight + count).
struct ResizeTaps {
  /// First source position, and how many follow it.
  std::int64_t first = 0;
  std::int64_t count = 0;
  /// Place of the first weight in AxisWeights::weights.
  std::int64_t weight = 0;
};

/// Antialiased bilinear weights of one axis, in float32 as torchvision computes them (interpolate with antialias,
/// align_corners false). Output position i of a side of `out` pixels made of `in` pixels, pixel centres at halves:
///     c = (i + 0.5) * in/out;  radius = max(1, in/out)
///     j in [floor(c - radius + 0.5), floor(c + radius + 0.5)) inside the image
///     w = max(0, 1 - |j + 0.5 - c| / radius), normalised
struct AxisWeights {
  /// Requires in >= 1 and out >= 1. Enlarging gives radius 1: plain bilinear with repeated edges.
  AxisWeights(std::int64_t in, std::int64_t out);
  /// One per output position.
  std::vector<ResizeTaps> taps;
  /// Of all outputs, one after the other; see ResizeTaps::weight.
  std::vector<float> weights;
};

}  // namespace troupe::image
