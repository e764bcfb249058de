#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe {

/// A packed RGB picture, 8 bits a channel, row major. A view: it owns nothing and is valid only as long as its source
/// says.
struct Rgb8View {
  const std::uint8_t* data = nullptr;  ///< row 0, column 0, red
  std::int64_t height = 0;             ///< pixels
  std::int64_t width = 0;              ///< pixels
  std::ptrdiff_t stride = 0;           ///< bytes from one row to the next, at least 3 * width

  const std::uint8_t* row(std::int64_t y) const { return data + y * stride; }
};

/// Which coefficients turn luma and chroma into RGB.
enum class ColorMatrix : std::uint8_t { bt601, bt709 };

/// A planar 4:2:0 picture as the decoder gives it. Chroma planes have (height + 1) / 2 rows and (width + 1) / 2
/// columns.
struct Yuv420View {
  const std::uint8_t* y = nullptr;
  const std::uint8_t* u = nullptr;
  const std::uint8_t* v = nullptr;
  std::ptrdiff_t y_stride = 0, u_stride = 0, v_stride = 0;  ///< bytes from one row to the next
  std::int64_t height = 0, width = 0;                       ///< pixels of the luma plane
  ColorMatrix matrix = ColorMatrix::bt601;
  bool full_range = false;  ///< luma 0..255 instead of 16..235
};

}  // namespace troupe
