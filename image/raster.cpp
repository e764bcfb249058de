#include "image/raster.h"

#include <algorithm>
#include <cmath>

namespace troupe::image {

Raster::Raster(std::int64_t height, std::int64_t width)
    : height_(height), width_(width), pixels_(static_cast<std::size_t>(3 * height * width)), bytes_(pixels_.size()) {}

/// `shape(x, y, color)` returns the coverage of the pixel centred there and sets its colour.
template <class Shape>
void Raster::draw(double left, double top, double right, double bottom, const Shape& shape) {
  const auto x0 = std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(left)) - 1);
  const auto y0 = std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(top)) - 1);
  const auto x1 = std::min<std::int64_t>(width_, static_cast<std::int64_t>(std::ceil(right)) + 1);
  const auto y1 = std::min<std::int64_t>(height_, static_cast<std::int64_t>(std::ceil(bottom)) + 1);
  for (std::int64_t y = y0; y < y1; ++y) {
    for (std::int64_t x = x0; x < x1; ++x) {
      RgbColor color{};
      const double cover = shape(static_cast<double>(x) + 0.5, static_cast<double>(y) + 0.5, color);
      if (cover <= 0) continue;
      float* pixel = pixels_.data() + 3 * (y * width_ + x);
      for (std::size_t c = 0; c < 3; ++c) pixel[c] += static_cast<float>(cover) * (color[c] - pixel[c]);
    }
  }
}

void Raster::band(double from, double to, const RgbColor& top, const RgbColor& bottom) {
  draw(0, from, static_cast<double>(width_), to, [&](double, double y, RgbColor& color) {
    const auto t = static_cast<float>(std::clamp((y - from) / std::max(1.0, to - from), 0.0, 1.0));
    for (std::size_t c = 0; c < 3; ++c) color[c] = top[c] + t * (bottom[c] - top[c]);
    return std::clamp(std::min(y - from, to - y) + 0.5, 0.0, 1.0);
  });
}

void Raster::ball(double x, double y, double radius, const RgbColor& color) {
  draw(x - radius, y - radius, x + radius, y + radius, [&](double px, double py, RgbColor& out) {
    const double light = std::hypot(px - (x - 0.35 * radius), py - (y - 0.35 * radius)) / radius;
    const auto shine = static_cast<float>(std::clamp(1.0 - light, 0.0, 1.0) * 0.45);
    for (std::size_t c = 0; c < 3; ++c) out[c] = color[c] + shine * (1 - color[c]);
    return std::clamp(radius - std::hypot(px - x, py - y) + 0.5, 0.0, 1.0);
  });
}

void Raster::capsule(double x0, double y0, double r0, double x1, double y1, double r1, const RgbColor& color,
                     double opacity) {
  const double dx = x1 - x0, dy = y1 - y0, length2 = std::max(1e-9, dx * dx + dy * dy), r = std::max(r0, r1);
  draw(std::min(x0, x1) - r, std::min(y0, y1) - r, std::max(x0, x1) + r, std::max(y0, y1) + r,
       [&](double px, double py, RgbColor& out) {
         const double t = std::clamp(((px - x0) * dx + (py - y0) * dy) / length2, 0.0, 1.0);
         const double radius = r0 + t * (r1 - r0), distance = std::hypot(px - x0 - t * dx, py - y0 - t * dy);
         const double across = std::min(1.0, distance / std::max(radius, 1e-9));
         const auto shade = static_cast<float>(1.0 - 0.35 * across * across);
         for (std::size_t c = 0; c < 3; ++c) out[c] = color[c] * shade;
         return opacity * std::clamp(radius - distance + 0.5, 0.0, 1.0);
       });
}

Rgb8View Raster::bytes() {
  for (std::size_t i = 0; i < pixels_.size(); ++i) {
    bytes_[i] = static_cast<std::uint8_t>(std::clamp(pixels_[i], 0.0f, 1.0f) * 255.0f + 0.5f);
  }
  return {bytes_.data(), height_, width_, static_cast<std::ptrdiff_t>(3 * width_)};
}

}  // namespace troupe::image
