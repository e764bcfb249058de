#pragma once

// The ray renderer's inner loop, written once in lanes.h's vectors; trace_{plain,avx2,avx512}.cpp include it. Row by
// row, so that depth and colour stay in the first-level cache; within a row shape by shape, nearest first, so that most
// of what lies behind is skipped after one comparison. No function of the standard library: a copy compiled for AVX
// could be linked elsewhere.
#include "env/render/lanes.h"
#include "env/render/trace.h"

namespace troupe::env {
namespace {

constexpr float kTiny = 1e-12F;  // for divisors: a ray along an axis
constexpr float kFar = 3e38F;    // nothing hit
constexpr float kAmbient = 0.35F, kDiffuse = 0.65F;
constexpr std::uint32_t kSky = 102U | 128U << 8 | 153U << 16;

/// Rays of kLanes neighbouring pixels in a shape's frame: direction, point at TraceGeom::start.
struct LaneRays {
  Floats d[3], p[3];
};
/// Where they meet the shape, from `start` on, and the cosine between normal and light.
struct LaneHit {
  Floats t, cosine;
  Mask hit;
};
/// The part of a hit test that all shapes share: beyond the near plane and before what is drawn.
struct LaneLimits {
  Floats low, high;
};

/// True when a lane is hit; the caller then works out the cosine.
TROUPE_INLINE bool keep(LaneHit& h, Mask shape, const LaneLimits& limits) {
  h.hit = both(shape, both(less(limits.low, h.t), less(h.t, limits.high)));
  return any(h.hit);
}
/// Cosine, times its length, between the normal (x, y, z) in the shape's frame and the light along the camera's axis.
TROUPE_INLINE Floats along_light(const TraceGeom& g, Floats x, Floats y, Floats z) {
  return x * g.turn[0][2] + y * g.turn[1][2] + z * g.turn[2][2];
}

/// The meet_ functions solve for the nearest entry within the limits and leave distance and cosine in h; false: no
/// lane hit.
TROUPE_INLINE bool meet_plane(const TraceGeom& g, const LaneRays& r, const LaneLimits& limits, LaneHit& h) {
  // start is 0 for planes, so p is the camera
  const Mask down = less(r.d[2], all(-kTiny));
  h.t = r.p[2] / select(down, -r.d[2], all(kTiny));
  Mask shape = down;
  if (!g.is_endless) {
    shape = both(shape, less(magnitude(r.p[0] + h.t * r.d[0]), all(g.size[0])));
    shape = both(shape, less(magnitude(r.p[1] + h.t * r.d[1]), all(g.size[1])));
  }
  if (!keep(h, shape, limits)) return false;
  h.cosine = all(g.turn[2][2]);
  return true;
}

TROUPE_INLINE bool meet_sphere(const TraceGeom& g, const LaneRays& r, const LaneLimits& limits, LaneHit& h) {
  const float radius = g.size[0];
  const Floats a = r.d[0] * r.d[0] + r.d[1] * r.d[1] + r.d[2] * r.d[2];
  const Floats b = r.p[0] * r.d[0] + r.p[1] * r.d[1] + r.p[2] * r.d[2];
  const Floats c = r.p[0] * r.p[0] + r.p[1] * r.p[1] + r.p[2] * r.p[2] - radius * radius;
  const Floats square = b * b - a * c;
  const Mask shape = less(Floats{}, square);
  if (!any(shape)) return false;
  h.t = (-b - root(larger(square, Floats{}))) / a;
  if (!keep(h, shape, limits)) return false;
  h.cosine = along_light(g, r.p[0] + h.t * r.d[0], r.p[1] + h.t * r.d[1], r.p[2] + h.t * r.d[2]) * g.inverse_size[0];
  return true;
}

/// Where the rays enter the endless cylinder around z; the end of the solid on that side is the only other way in.
TROUPE_INLINE Mask enter_tube(const TraceGeom& g, const LaneRays& r, Floats& t) {
  const Floats a = larger(r.d[0] * r.d[0] + r.d[1] * r.d[1], all(kTiny));
  const Floats b = r.p[0] * r.d[0] + r.p[1] * r.d[1];
  const Floats c = r.p[0] * r.p[0] + r.p[1] * r.p[1] - g.size[0] * g.size[0];
  const Floats square = b * b - a * c;
  const Mask shape = less(Floats{}, square);
  if (any(shape)) t = (-b - root(larger(square, Floats{}))) / a;
  return shape;
}

TROUPE_INLINE bool meet_capsule(const TraceGeom& g, const LaneRays& r, const LaneLimits& limits, LaneHit& h) {
  const float radius = g.size[0];
  const Floats half = all(g.size[1]);
  Floats side = {};
  const Mask inside = enter_tube(g, r, side);
  if (!any(inside)) return false;
  const Floats z = r.p[2] + side * r.d[2];
  // the ball at the end where the ray comes in; its centre is on the axis, so the tube's square serves only x and y
  const Floats end = with_sign(z, half);
  const Floats q = r.p[2] - end;
  const Floats a = r.d[0] * r.d[0] + r.d[1] * r.d[1] + r.d[2] * r.d[2];
  const Floats b = r.p[0] * r.d[0] + r.p[1] * r.d[1] + q * r.d[2];
  const Floats c = r.p[0] * r.p[0] + r.p[1] * r.p[1] + q * q - radius * radius;
  const Floats square = b * b - a * c;
  const Floats ball = (-b - root(larger(square, Floats{}))) / a;
  const Mask on_side = less(magnitude(z), half);
  h.t = select(on_side, side, ball);
  if (!keep(h, both(inside, either(on_side, less(Floats{}, square))), limits)) return false;
  const Floats height = select(on_side, Floats{}, q + h.t * r.d[2]);
  h.cosine = along_light(g, r.p[0] + h.t * r.d[0], r.p[1] + h.t * r.d[1], height) * g.inverse_size[0];
  return true;
}

TROUPE_INLINE bool meet_cylinder(const TraceGeom& g, const LaneRays& r, const LaneLimits& limits, LaneHit& h) {
  const Floats half = all(g.size[1]);
  Floats side = {};
  const Mask inside = enter_tube(g, r, side);
  if (!any(inside)) return false;
  const Floats z = r.p[2] + side * r.d[2];
  const Floats end = with_sign(z, half);
  const Floats cap = (end - r.p[2]) / with_sign(r.d[2], larger(magnitude(r.d[2]), all(kTiny)));
  const Floats x = r.p[0] + cap * r.d[0], y = r.p[1] + cap * r.d[1];
  const Mask on_cap = less(x * x + y * y, all(g.size[0] * g.size[0]));
  const Mask on_side = less(magnitude(z), half);
  h.t = select(on_side, side, cap);
  if (!keep(h, both(inside, either(on_side, on_cap)), limits)) return false;
  const Floats around = along_light(g, r.p[0] + h.t * r.d[0], r.p[1] + h.t * r.d[1], Floats{}) * g.inverse_size[0];
  h.cosine = select(on_side, around, with_sign(end, all(1.0F)) * g.turn[2][2]);
  return true;
}

TROUPE_INLINE bool meet_box(const TraceGeom& g, const LaneRays& r, const LaneLimits& limits, LaneHit& h) {
  Floats entry[3], exit[3], inverse[3];
  for (int k = 0; k < 3; ++k) {
    inverse[k] = 1.0F / with_sign(r.d[k], larger(magnitude(r.d[k]), all(kTiny)));
    const Floats middle = -r.p[k] * inverse[k], half = g.size[k] * magnitude(inverse[k]);
    entry[k] = middle - half;
    exit[k] = middle + half;
  }
  h.t = larger(entry[0], larger(entry[1], entry[2]));
  if (!keep(h, less(h.t, smaller(exit[0], smaller(exit[1], exit[2]))), limits)) return false;
  // the normal of the face that was entered last points against the ray
  Floats cosine = -with_sign(inverse[2], all(1.0F)) * g.turn[2][2];
  cosine = select(less(entry[1], h.t), cosine, -with_sign(inverse[1], all(1.0F)) * g.turn[1][2]);
  h.cosine = select(less(entry[0], h.t), cosine, -with_sign(inverse[0], all(1.0F)) * g.turn[0][2]);
  return true;
}

TROUPE_INLINE bool meet_ellipsoid(const TraceGeom& g, const LaneRays& r, const LaneLimits& limits, LaneHit& h) {
  // in a frame scaled to the unit ball
  Floats d[3], p[3];
  for (int k = 0; k < 3; ++k) {
    d[k] = r.d[k] * g.inverse_size[k];
    p[k] = r.p[k] * g.inverse_size[k];
  }
  const Floats a = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
  const Floats b = p[0] * d[0] + p[1] * d[1] + p[2] * d[2];
  const Floats c = p[0] * p[0] + p[1] * p[1] + p[2] * p[2] - 1.0F;
  const Floats square = b * b - a * c;
  const Mask shape = less(Floats{}, square);
  if (!any(shape)) return false;
  h.t = (-b - root(larger(square, Floats{}))) / a;
  if (!keep(h, shape, limits)) return false;
  Floats n[3];
  for (int k = 0; k < 3; ++k) n[k] = (p[k] + h.t * d[k]) * g.inverse_size[k];
  const Floats length = root(larger(n[0] * n[0] + n[1] * n[1] + n[2] * n[2], all(kTiny)));
  h.cosine = along_light(g, n[0], n[1], n[2]) / length;
  return true;
}

/// 1.1 and 0.9 by turns on squares of 0.5 m.
TROUPE_INLINE Floats checker(const LaneRays& r, Floats t) {
  Ints sum = {};
  for (int k = 0; k < 2; ++k) {
    const Floats cells = (r.p[k] + t * r.d[k]) * 2.0F;
    sum += to_whole_below(larger(smaller(cells, all(1e6F)), all(-1e6F)));
  }
  const Floats odd = __builtin_convertvector(sum & 1, Floats);
  return 1.1F - 0.2F * odd;
}

/// r, g, b and label of the hit in one word, from the lowest byte on.
TROUPE_INLINE Ints shade(const TraceGeom& g, const LaneRays& r, const LaneHit& h) {
  Floats light = kAmbient + kDiffuse * smaller(larger(h.cosine, Floats{}), all(1.0F));
  if (g.is_checkered) light *= checker(r, h.t);
  Ints color = Ints{} + static_cast<std::int32_t>(g.label << 24);
  for (int k = 0; k < 3; ++k) color |= to_whole(smaller(g.rgb[k] * light + 0.5F, all(255.0F))) << (8 * k);
  return color;
}

/// A bound of a plane's depth in one row: its height over the steepest ray. A floor is mostly hidden, and then never
/// tried.
TROUPE_INLINE float nearest_in_row(const TraceImage& image, const TraceGeom& g, float down_row) {
  const float edge = 0.5F * static_cast<float>(image.out.width) * image.inverse_focal;
  const float across = g.turn[2][0] < 0 ? -g.turn[2][0] : g.turn[2][0];
  const float steepest = across * edge - down_row;
  return steepest > kTiny ? 0.999F * g.moved[2][2] / steepest : kFar;
}

/// One shape in one row, whose height in the image's plane is `py`.
template <auto kMeet>
TROUPE_INLINE void draw_span(const TraceImage& image, const TraceGeom& g, float py) {
  Floats steps = {};
  for (std::int64_t i = 0; i < kLanes; ++i) steps[i] = static_cast<float>(i);
  const float middle = 0.5F - 0.5F * static_cast<float>(image.out.width);
  float d_row[3], p_row[3];
  for (int k = 0; k < 3; ++k) {
    d_row[k] = g.turn[k][1] * py - g.turn[k][2];
    p_row[k] = g.moved[k][1] * py + g.moved[k][2];
  }
  const float nearest = g.kind == GeomKind::plane ? nearest_in_row(image, g, d_row[2]) : g.nearest;
  for (std::int64_t x = g.x_begin & ~(kLanes - 1); x < g.x_end; x += kLanes) {
    const Floats drawn = load(image.row_depth + x);
    if (!any(less(all(nearest), drawn))) continue;
    const Floats px = (steps + (static_cast<float>(x) + middle)) * image.inverse_focal;
    LaneRays rays;
    for (int k = 0; k < 3; ++k) {
      rays.d[k] = g.turn[k][0] * px + d_row[k];
      rays.p[k] = g.moved[k][0] * px + p_row[k];
    }
    LaneHit h;
    const LaneLimits limits{all(image.near - g.start), drawn - g.start};
    if (!kMeet(g, rays, limits, h)) continue;
    store(image.row_depth + x, select(h.hit, h.t + g.start, drawn));
    store(image.row_color + x, select(h.hit, shade(g, rays, h), load(image.row_color + x)));
  }
}

static void draw_row_of(const TraceImage& image, const TraceGeom& g, float py) {
  switch (g.kind) {
    case GeomKind::plane:
      return draw_span<meet_plane>(image, g, py);
    case GeomKind::sphere:
      return draw_span<meet_sphere>(image, g, py);
    case GeomKind::capsule:
      return draw_span<meet_capsule>(image, g, py);
    case GeomKind::cylinder:
      return draw_span<meet_cylinder>(image, g, py);
    case GeomKind::box:
      return draw_span<meet_box>(image, g, py);
    case GeomKind::ellipsoid:
      return draw_span<meet_ellipsoid>(image, g, py);
  }
}

/// Copies the finished row out.
static void put_row(const TraceImage& image, std::int64_t y) {
  const RenderImages& out = image.out;
  const std::int64_t width = out.width;
  if (out.rgb != nullptr) {
    // four bytes at a time, of which the next pixel overwrites the last; not so the row's last pixel
    std::uint8_t* rgb = out.rgb + y * width * 3;
    for (std::int64_t x = 0; x + 1 < width; ++x) std::memcpy(rgb + 3 * x, image.row_color + x, 4);
    std::memcpy(rgb + 3 * (width - 1), image.row_color + (width - 1), 3);
  }
  if (out.depth != nullptr) {
    float* depth = out.depth + y * width;
    for (std::int64_t x = 0; x < width; ++x) depth[x] = image.row_depth[x] < kFar ? image.row_depth[x] : 0.0F;
  }
  if (out.labels != nullptr) {
    std::uint8_t* labels = out.labels + y * width;
    for (std::int64_t x = 0; x < width; ++x) labels[x] = static_cast<std::uint8_t>(image.row_color[x] >> 24);
  }
}

static void trace_rows(const TraceImage& image) {
  const std::int64_t padded = (image.out.width + 15) & ~std::int64_t{15};
  const Floats far = all(kFar);
  const Ints sky = Ints{} + static_cast<std::int32_t>(kSky);
  for (std::int64_t y = 0; y < image.out.height; ++y) {
    for (std::int64_t x = 0; x < padded; x += kLanes) {
      store(image.row_depth + x, far);
      store(image.row_color + x, sky);
    }
    const float py = (0.5F * static_cast<float>(image.out.height) - static_cast<float>(y) - 0.5F) * image.inverse_focal;
    for (std::int64_t i = 0; i < image.num_geoms; ++i) {
      const TraceGeom& g = image.geoms[i];
      if (y >= g.y_begin && y < g.y_end) draw_row_of(image, g, py);
    }
    put_row(image, y);
  }
}

}  // namespace
}  // namespace troupe::env
