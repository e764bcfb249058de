#pragma once

#include <cstddef>
#include <cstdint>

namespace troupe::image {

/// A packed RGB image, 8 bits a channel, row major. A view: it owns nothing and is valid only as long as its source
/// says.
struct Rgb8View {
  /// Red of row 0, column 0; green and blue follow.
  const std::uint8_t* data = nullptr;
  /// Size in pixels.
  std::int64_t height = 0;
  std::int64_t width = 0;
  /// Bytes from one row to the next, at least 3 * width.
  std::ptrdiff_t stride = 0;

  /// First byte of row y.
  const std::uint8_t* row(std::int64_t y) const { return data + y * stride; }
};

/// Which coefficients turn luma and chroma into RGB: ITU-R BT.601 (standard definition, and what untagged files count
/// as) or BT.709 (high definition).
enum class ColorMatrix : std::uint8_t { bt601, bt709 };

/// A planar 4:2:0 frame as the decoder gives it; a view like Rgb8View. Chroma planes have (height + 1) / 2 rows and
/// (width + 1) / 2 columns.
struct Yuv420View {
  /// First bytes of the luma plane and of the two chroma planes (Cb, Cr).
  const std::uint8_t* y = nullptr;
  const std::uint8_t* u = nullptr;
  const std::uint8_t* v = nullptr;
  /// Bytes from one row to the next.
  std::ptrdiff_t y_stride = 0, u_stride = 0, v_stride = 0;
  /// Pixels of the luma plane.
  std::int64_t height = 0, width = 0;
  ColorMatrix matrix = ColorMatrix::bt601;
  /// Luma and chroma use 0..255; else luma 16..235 and chroma 16..240.
  bool full_range = false;
};

}  // namespace troupe::image
