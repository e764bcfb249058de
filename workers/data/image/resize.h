#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "workers/data/image/video_frame.h"

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

/// Resizes packed RGB of one fixed size to float planes in [0, 1], columns first, then rows. Keeps its buffers
/// between frames.
/// Not thread-safe.
class AntialiasResize {
 public:
  AntialiasResize(std::int64_t in_height, std::int64_t in_width, std::int64_t out_height, std::int64_t out_width);

  std::int64_t in_height() const noexcept { return in_height_; }
  std::int64_t in_width() const noexcept { return in_width_; }

  /// `source` is in_height x in_width; each plane takes out_height * out_width values. Values are x / 255, not rounded.
  void run(const Rgb8View& source, std::span<float> red, std::span<float> green, std::span<float> blue);

 private:
  std::int64_t in_height_, in_width_, out_height_, out_width_;
  AxisWeights columns_, rows_;
  std::vector<float> source_row_, narrowed_, mixed_;
};

}  // namespace troupe
