#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace troupe::data {

/// An image of luma and two chroma planes, full range, chroma centred between the luma samples that it covers (JPEG).
/// A view.
struct PlanarFrame {
  /// First bytes of Y, Cb and Cr.
  std::array<const std::uint8_t*, 3> planes{};
  /// Bytes from one row to the next.
  std::array<std::ptrdiff_t, 3> strides{};
  /// Pixels of the luma plane.
  std::int64_t height = 0, width = 0;
  /// The chroma planes have half the width, half the height, rounded up (4:2:2, 4:2:0).
  bool half_width = false, half_height = false;
};

/// BT.601 full-range YCbCr to packed RGB; `rgb` has 3 * height * width bytes. Missing chroma is interpolated: 3/4 of
/// the nearer sample, 1/4 of the farther one, in each direction; edges repeat.
///     R = Y + 1.402 (Cr - 128),  G = Y - 0.344136 (Cb - 128) - 0.714136 (Cr - 128),  B = Y + 1.772 (Cb - 128)
/// in 16-bit fixed point, rounded. Source: ITU-T T.871 section 7.
void full_range_to_rgb(const PlanarFrame& frame, std::vector<std::uint8_t>& rgb);

}  // namespace troupe::data
