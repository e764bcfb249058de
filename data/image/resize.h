#pragma once

#include <cstdint>
#include <vector>

namespace troupe {

/// Source columns (or rows) that make one output column (or row), and their float32 weights, which sum to 1.
struct ResizeTaps {
  std::int64_t first = 0;  ///< of the source
  std::int64_t count = 0;
  std::int64_t weight = 0;  ///< place of the first weight in AxisWeights::weights
};

/// Antialiased bilinear weights of one axis (data.md 4.3), in float32 like torchvision:
///     c = (i + 0.5) * in/out;  radius = max(1, in/out)
///     j in [floor(c - radius + 0.5), floor(c + radius + 0.5)) inside the image
///     w = max(0, 1 - |j + 0.5 - c| / radius), normalised
struct AxisWeights {
  AxisWeights(std::int64_t in, std::int64_t out);
  std::vector<ResizeTaps> taps;  ///< one per output position
  std::vector<float> weights;
};

}  // namespace troupe
