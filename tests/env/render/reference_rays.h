#pragma once

// The ray renderer's frames, worked out slowly: one ray at a time, in double precision, each solid as an interval of
// the ray.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "base/namespaces.h"
#include "env/render/ray_renderer.h"

namespace troupe::env {

using RayVec = std::array<double, 3>;

inline double ray_dot(const RayVec& a, const RayVec& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

struct RaySample {
  std::uint8_t label = 0;
  double depth = 0;
  RayVec rgb{102, 128, 153};  ///< 0 to 255, not rounded
};

struct RayInterval {
  double in = -std::numeric_limits<double>::infinity(), out = std::numeric_limits<double>::infinity();
  bool is_empty() const { return !(in < out); }
  RayInterval operator&(const RayInterval& o) const { return {std::max(in, o.in), std::min(out, o.out)}; }
};
inline constexpr RayInterval kNoInterval{1, 0};

/// a t^2 + 2 b t + c < 0.
inline RayInterval where_negative(double a, double b, double c) {
  if (a <= 0) return c < 0 ? RayInterval{} : kNoInterval;
  const double square = b * b - a * c;
  if (square <= 0) return kNoInterval;
  return {(-b - std::sqrt(square)) / a, (-b + std::sqrt(square)) / a};
}
inline RayInterval slab(double o, double d, double half) {
  if (d == 0) return std::abs(o) < half ? RayInterval{} : kNoInterval;
  const double s = (-half - o) / d, t = (half - o) / d;
  return {std::min(s, t), std::max(s, t)};
}
inline RayInterval ball(RayVec o, const RayVec& d, double z, double radius) {
  o[2] -= z;
  return where_negative(ray_dot(d, d), ray_dot(o, d), ray_dot(o, o) - radius * radius);
}
inline RayInterval tube(const RayVec& o, const RayVec& d, double radius) {
  return where_negative(d[0] * d[0] + d[1] * d[1], o[0] * d[0] + o[1] * d[1],
                        o[0] * o[0] + o[1] * o[1] - radius * radius);
}

/// The entry into a shape (infinite: none) and the normal there, in the shape's frame.
inline double enter_shape(const RenderGeom& g, const RayVec& o, const RayVec& d, RayVec& normal) {
  const double none = std::numeric_limits<double>::infinity();
  const RayVec s{g.size[0], g.size[1], g.size[2]};
  RayInterval solid;
  switch (g.kind) {
    case GeomKind::plane: {
      if (d[2] >= 0 || o[2] <= 0) return none;
      const double t = -o[2] / d[2];
      const bool is_endless = s[0] <= 0 && s[1] <= 0;
      if (!is_endless && (std::abs(o[0] + t * d[0]) > s[0] || std::abs(o[1] + t * d[1]) > s[1])) return none;
      normal = {0, 0, 1};
      return t;
    }
    case GeomKind::sphere:
      solid = ball(o, d, 0, s[0]);
      break;
    case GeomKind::capsule: {
      const RayInterval parts[] = {tube(o, d, s[0]) & slab(o[2], d[2], s[1]), ball(o, d, s[1], s[0]),
                                   ball(o, d, -s[1], s[0])};
      solid = {none, -none};
      for (const auto& part : parts) {
        if (!part.is_empty()) solid = {std::min(solid.in, part.in), std::max(solid.out, part.out)};
      }
      break;
    }
    case GeomKind::cylinder:
      solid = tube(o, d, s[0]) & slab(o[2], d[2], s[1]);
      break;
    case GeomKind::box:
      solid = slab(o[0], d[0], s[0]) & slab(o[1], d[1], s[1]) & slab(o[2], d[2], s[2]);
      break;
    case GeomKind::ellipsoid: {
      RayVec p = o, e = d;
      for (std::size_t k = 0; k < 3; ++k) p[k] /= s[k], e[k] /= s[k];
      solid = ball(p, e, 0, 1);
      break;
    }
  }
  if (solid.is_empty()) return none;
  RayVec at{};
  for (std::size_t k = 0; k < 3; ++k) at[k] = o[k] + solid.in * d[k];
  normal = at;
  if (g.kind == GeomKind::capsule) normal[2] -= std::clamp(at[2], -s[1], s[1]);
  if (g.kind == GeomKind::ellipsoid) {
    for (std::size_t k = 0; k < 3; ++k) normal[k] /= s[k] * s[k];
  }
  if (g.kind == GeomKind::cylinder) {
    const bool is_cap = std::abs(std::abs(at[2]) - s[1]) < 1e-9;
    normal = is_cap ? RayVec{0, 0, at[2]} : RayVec{at[0], at[1], 0};
  }
  if (g.kind == GeomKind::box) {
    std::size_t face = 0;
    for (std::size_t k = 1; k < 3; ++k) {
      if (std::abs(at[k]) - s[k] > std::abs(at[face]) - s[face]) face = k;
    }
    normal = {};
    normal[face] = at[face];
  }
  const double length = std::sqrt(ray_dot(normal, normal));
  for (double& n : normal) n /= length;
  return solid.in;
}

/// What the ray through (x, y), in pixels from the left and the top, meets.
inline RaySample cast_ray(std::span<const RenderGeom> geoms, std::span<const GeomPose> poses,
                          const RenderCamera& camera, std::int64_t width, std::int64_t height, double x, double y) {
  const double focal = 0.5 * static_cast<double>(height) / std::tan(0.5 * static_cast<double>(camera.fovy));
  const RayVec v{(x - 0.5 * static_cast<double>(width)) / focal, (0.5 * static_cast<double>(height) - y) / focal, -1};
  RayVec ray{}, light{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t k = 0; k < 3; ++k) ray[i] += static_cast<double>(camera.pose.rotation[3 * i + k]) * v[k];
    light[i] = camera.pose.rotation[3 * i + 2];
  }
  RaySample sample;
  double first = std::numeric_limits<double>::infinity();
  for (std::size_t n = 0; n < geoms.size(); ++n) {
    RayVec o{}, d{}, l{}, normal{};
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t k = 0; k < 3; ++k) {
        const double turn = poses[n].rotation[3 * k + i];
        o[i] += turn * (static_cast<double>(camera.pose.position[k]) - static_cast<double>(poses[n].position[k]));
        d[i] += turn * ray[k];
        l[i] += turn * light[k];
      }
    }
    const double t = enter_shape(geoms[n], o, d, normal);
    if (!(t > static_cast<double>(RayRenderer::kNear)) || t >= first) continue;
    first = t;
    double shade = 0.35 + 0.65 * std::max(0.0, ray_dot(normal, l));
    if (geoms[n].is_checkered && geoms[n].kind == GeomKind::plane) {
      const double cells = std::floor(2 * (o[0] + t * d[0])) + std::floor(2 * (o[1] + t * d[1]));
      shade *= std::fmod(std::abs(cells), 2.0) == 0.0 ? 1.1 : 0.9;
    }
    sample.label = geoms[n].label;
    sample.depth = t;
    for (std::size_t k = 0; k < 3; ++k)
      sample.rgb[k] = std::min(255.0, 255.0 * static_cast<double>(geoms[n].rgb[k]) * shade);
  }
  return sample;
}

}  // namespace troupe::env
