#pragma once

#include "base/namespaces.h"
#include "image/pixel.h"

namespace troupe::kernels {

// The image chain pixel by pixel: from the planes of a decoded frame to its tile of the canvas. The CUDA kernels
// are loops over these functions, and a scalar loop over them is the reference of the vectorised CPU chain
// (image).

/// Antialiased weights of one axis on `taps` entries an output position, PyTorch's bilinear with antialias=True;
/// entries past count are not read.
struct AxisView {
  /// First input position of each output position, and the number of positions from there on, at most `taps`.
  const std::int32_t* first = nullptr;
  const std::int32_t* count = nullptr;
  /// [out, taps].
  const float* weights = nullptr;
  std::int32_t taps = 0;
};

/// One view of one time step. Pointers are of the memory that the loop runs in.
struct ImageTile {
  /// Planar 4:2:0.
  const std::uint8_t* y = nullptr;
  /// Chroma planes of half the width and height, rounded up.
  const std::uint8_t* u = nullptr;
  const std::uint8_t* v = nullptr;
  /// Bytes.
  std::int64_t y_stride = 0, u_stride = 0, v_stride = 0;
  /// Of the frame's matrix and range.
  YuvCoefficients coefficients{};
  /// Of the crop, pixels.
  std::int32_t top = 0, left = 0;
  /// The tile's own; operations 0 for none.
  JitterFactors jitter{};
  /// Of the time step, u8 [canvas height, canvas width, 3].
  std::uint8_t* canvas = nullptr;
  /// Place on the canvas; each column is written `repeat` times.
  std::int32_t row = 0, column = 0, repeat = 1;
};

/// What all tiles of a launch share.
struct ImageTileShape {
  /// Of a tile before its columns are repeated.
  std::int32_t height = 0, width = 0;
  /// Pixels of one canvas line.
  std::int32_t canvas_width = 0;
  /// From the crop's size to the tile's.
  AxisView columns, rows;
};

/// Pixel (y, x) of the crop in [0, 1].
/// Chroma is that of the 2 x 2 block that the pixel lies in, without interpolation.
TROUPE_HOST_DEVICE void crop_pixel(const ImageTile& t, std::int32_t y, std::int32_t x, float rgb[3]) {
  const std::int32_t line = t.top + y, column = t.left + x;
  const std::int32_t u = t.u[line / 2 * t.u_stride + column / 2], v = t.v[line / 2 * t.v_stride + column / 2];
  const std::int32_t luma = luma_term(t.y[line * t.y_stride + column], t.coefficients);
  rgb[0] = unit_of_level(clip_byte(luma + red_term(v, t.coefficients)));
  rgb[1] = unit_of_level(clip_byte(luma + green_term(u, v, t.coefficients)));
  rgb[2] = unit_of_level(clip_byte(luma + blue_term(u, t.coefficients)));
}

/// Pixel (y, x) of the resized crop: columns first, then rows.
/// Terms are added in order of position, each with one rounding (fused), so that every loop gives the same bits.
TROUPE_HOST_DEVICE void resized_pixel(const ImageTile& t, const ImageTileShape& s, std::int32_t y, std::int32_t x,
                                      float rgb[3]) {
  const float* across = s.columns.weights + std::int64_t{x} * s.columns.taps;
  const float* down = s.rows.weights + std::int64_t{y} * s.rows.taps;
  for (std::int32_t j = 0; j < s.rows.count[y]; ++j) {
    float line[3] = {}, pixel[3];
    for (std::int32_t i = 0; i < s.columns.count[x]; ++i) {
      crop_pixel(t, s.rows.first[y] + j, s.columns.first[x] + i, pixel);
      for (int c = 0; c < 3; ++c) line[c] = i == 0 ? pixel[c] * across[0] : fused(pixel[c], across[i], line[c]);
    }
    for (int c = 0; c < 3; ++c) rgb[c] = j == 0 ? line[c] * down[0] : fused(line[c], down[j], rgb[c]);
  }
}

/// Place of the contrast in the list of operations; `operations` when it is not there.
TROUPE_HOST_DEVICE std::int32_t contrast_place(const JitterFactors& jitter) {
  std::int32_t place = 0;
  while (place < jitter.operations && jitter.order[place] != 1) ++place;
  return place;
}

/// Operations [from, to) of the tile's jitter on one pixel.
/// Split at the contrast, which needs the mean gray of all pixels before it.
TROUPE_HOST_DEVICE void jitter_range(const JitterFactors& j, std::int32_t from, std::int32_t to, float contrast_add,
                                     float rgb[3]) {
  for (std::int32_t i = from; i < to; ++i) jitter_pixel(j, j.order[i], contrast_add, rgb[0], rgb[1], rgb[2]);
}

/// What the contrast adds, from the sum of gray over the tile.
TROUPE_HOST_DEVICE float contrast_term(const JitterFactors& j, double gray_sum, std::int64_t pixels) {
  return static_cast<float>(gray_sum / static_cast<double>(pixels)) * j.contrast_rest;
}

/// Writes a finished pixel to the canvas.
/// Values are truncated to bytes, not rounded, as the references do.
TROUPE_HOST_DEVICE void place_pixel(const ImageTile& t, const ImageTileShape& s, std::int32_t y, std::int32_t x,
                                    const float rgb[3]) {
  std::uint8_t* out = t.canvas + 3 * (std::int64_t{t.row + y} * s.canvas_width + t.column + std::int64_t{x} * t.repeat);
  for (std::int32_t copy = 0; copy < t.repeat; ++copy, out += 3) {
    for (int c = 0; c < 3; ++c) out[c] = static_cast<std::uint8_t>(byte_of_unit(rgb[c]));
  }
}

}  // namespace troupe::kernels
