#pragma once

#include <vector>

#include "image/augmentation.h"
#include "image/canvas.h"
#include "image/color_jitter.h"
#include "image/resize.h"
#include "image/video_frame.h"
#include "kernels/image_tile.h"

namespace troupe::image {

/// AxisWeights in the form that the pixel functions of kernels/ read.
struct FlatAxis {
  std::vector<std::int32_t> first, count;
  std::vector<float> weights;
  std::int32_t taps = 0;

  FlatAxis(std::int64_t in, std::int64_t out) {
    const AxisWeights axis(in, out);
    for (const ResizeTaps& t : axis.taps) taps = std::max(taps, static_cast<std::int32_t>(t.count));
    weights.resize(static_cast<std::size_t>(out * taps));
    for (std::size_t i = 0; i < axis.taps.size(); ++i) {
      const ResizeTaps& t = axis.taps[i];
      first.push_back(static_cast<std::int32_t>(t.first));
      count.push_back(static_cast<std::int32_t>(t.count));
      for (std::int64_t k = 0; k < t.count; ++k) {
        weights[i * static_cast<std::size_t>(taps) + static_cast<std::size_t>(k)] =
            axis.weights[static_cast<std::size_t>(t.weight + k)];
      }
    }
  }
  kernels::AxisView view() const { return {first.data(), count.data(), weights.data(), taps}; }
};

inline kernels::ImageTile tile_of(const Yuv420View& p, const ImageAugmentation& a, const CanvasTile& place,
                                  std::uint8_t* canvas) {
  return {.y = p.y,
          .u = p.u,
          .v = p.v,
          .y_stride = p.y_stride,
          .u_stride = p.u_stride,
          .v_stride = p.v_stride,
          .coefficients = kernels::yuv_coefficients(p.matrix == ColorMatrix::bt709, p.full_range),
          .top = static_cast<std::int32_t>(a.top),
          .left = static_cast<std::int32_t>(a.left),
          .jitter = jitter_factors(a.jitter),
          .canvas = canvas,
          .row = static_cast<std::int32_t>(place.row),
          .column = static_cast<std::int32_t>(place.column),
          .repeat = static_cast<std::int32_t>(place.repeat)};
}

/// One tile, pixel by pixel, through the functions that the CUDA kernels are loops over.
inline void run_scalar_chain(const Yuv420View& image, const ImageAugmentation& a, const CanvasTile& place,
                             std::int64_t height, std::int64_t width, std::int64_t canvas_width, std::uint8_t* canvas) {
  const FlatAxis columns(a.width, width), rows(a.height, height);
  const kernels::ImageTileShape shape{static_cast<std::int32_t>(height), static_cast<std::int32_t>(width),
                                      static_cast<std::int32_t>(canvas_width), columns.view(), rows.view()};
  const kernels::ImageTile tile = tile_of(image, a, place, canvas);
  const std::int32_t contrast_at = kernels::contrast_place(tile.jitter), operations = tile.jitter.operations;
  std::vector<float> planes(static_cast<std::size_t>(3 * height * width));
  double gray = 0;
  for (std::int32_t i = 0; i < shape.height * shape.width; ++i) {
    float* rgb = planes.data() + 3 * i;
    kernels::resized_pixel(tile, shape, i / shape.width, i % shape.width, rgb);
    kernels::jitter_range(tile.jitter, 0, contrast_at, 0.0f, rgb);
    gray += static_cast<double>(kernels::gray_of(rgb[0], rgb[1], rgb[2]));
  }
  const float add = kernels::contrast_term(tile.jitter, gray, height * width);
  for (std::int32_t i = 0; i < shape.height * shape.width; ++i) {
    kernels::jitter_range(tile.jitter, contrast_at, operations, add, planes.data() + 3 * i);
    kernels::place_pixel(tile, shape, i / shape.width, i % shape.width, planes.data() + 3 * i);
  }
}

}  // namespace troupe::image
