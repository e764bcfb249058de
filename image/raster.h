#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "image/video_frame.h"

namespace troupe::image {

/// Red, green, blue, each in [0, 1].
using RgbColor = std::array<float, 3>;

/// Draws antialiased shapes from their distance fields: a pixel is covered by clamp(0.5 - distance, 0, 1).
/// Coordinates are pixels, x to the right, y down, pixel centres at halves. Not thread-safe.
class Raster {
 public:
  /// A black image of `height` x `width` pixels.
  /// Shapes are drawn over it in the order of the calls; what lies outside is cut off.
  Raster(std::int64_t height, std::int64_t width);

  /// Vertical gradient over rows [from, to), `from` and `to` in pixels; the edges are antialiased.
  void band(double from, double to, const RgbColor& top, const RgbColor& bottom);
  /// A disc around (x, y) with a highlight towards the upper left.
  void ball(double x, double y, double radius, const RgbColor& color);
  /// A thick line with round ends, lighter along its middle, from (x0, y0) to (x1, y1). The radius may change from r0
  /// at one end to r1 at the other. `opacity` in [0, 1] multiplies the coverage.
  void capsule(double x0, double y0, double r0, double x1, double y1, double r1, const RgbColor& color,
               double opacity = 1);

  /// The image as packed RGB bytes, clamped and rounded; valid until the next call of any function, at most while the
  /// object lives.
  Rgb8View bytes();

 private:
  template <class Shape>
  void draw(double left, double top, double right, double bottom, const Shape& shape);
  std::int64_t height_, width_;
  // Height x width x 3.
  std::vector<float> pixels_;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace troupe::image
