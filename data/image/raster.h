#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "data/image/video_frame.h"

namespace troupe {

using RgbColor = std::array<float, 3>;  ///< 0..1

/// Draws antialiased shapes from their distance fields: a pixel is covered by clamp(0.5 - distance, 0, 1).
/// Coordinates are pixels, x to the right, y down, pixel centres at halves. Not thread-safe.
class Raster {
 public:
  Raster(std::int64_t height, std::int64_t width);

  /// Vertical gradient over rows [from, to), `from` and `to` in pixels; the edges are antialiased.
  void band(double from, double to, const RgbColor& top, const RgbColor& bottom);
  /// A disc with a highlight towards the upper left.
  void ball(double x, double y, double radius, const RgbColor& color);
  /// A thick line with round ends, lighter along its middle. The radius may change from one end to the other.
  void capsule(double x0, double y0, double r0, double x1, double y1, double r1, const RgbColor& color,
               double opacity = 1);

  /// Packed bytes of the picture; valid until the next call.
  Rgb8View bytes();

 private:
  template <class Shape>
  void draw(double left, double top, double right, double bottom, const Shape& shape);
  std::int64_t height_, width_;
  std::vector<float> pixels_;  // height x width x 3
  std::vector<std::uint8_t> bytes_;
};

}  // namespace troupe
