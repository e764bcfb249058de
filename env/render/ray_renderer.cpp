#include "env/render/ray_renderer.h"

#include <algorithm>
#include <cmath>

namespace troupe::env {
namespace {

using Vec3 = std::array<double, 3>;

/// The smallest rectangle of the image's plane and the least depth that contain a box, cut off at the near plane.
struct Outline {
  double left = 1e30, right = -1e30, low = 1e30, high = -1e30;
  double nearest = 1e30;
  bool is_seen = false;

  void add(const Vec3& corner) {
    const double depth = -corner[2];
    left = std::min(left, corner[0] / depth);
    right = std::max(right, corner[0] / depth);
    low = std::min(low, corner[1] / depth);
    high = std::max(high, corner[1] / depth);
    nearest = std::min(nearest, depth);
    is_seen = true;
  }
};

/// Half lengths of the box around a shape, in its frame.
Vec3 half_lengths(const RenderGeom& geom) {
  const double a = geom.size[0], b = geom.size[1], c = geom.size[2];
  switch (geom.kind) {
    case GeomKind::plane:
      return {a, b, 0};
    case GeomKind::sphere:
      return {a, a, a};
    case GeomKind::capsule:
      return {a, a, a + b};
    case GeomKind::cylinder:
      return {a, a, b};
    case GeomKind::box:
    case GeomKind::ellipsoid:
      return {a, b, c};
  }
  return {};
}

/// `centre` and the columns of `axes`: a box in the camera's frame.
Outline outline_of(const Vec3& centre, const double (&axes)[3][3], const Vec3& half) {
  constexpr double kNear = RayRenderer::kNear;
  Outline outline;
  Vec3 corners[8];
  for (int i = 0; i < 8; ++i) {
    corners[i] = centre;
    for (std::size_t k = 0; k < 3; ++k) {
      const double reach = (i >> k & 1) != 0 ? half[k] : -half[k];
      for (std::size_t j = 0; j < 3; ++j) corners[i][j] += reach * axes[j][k];
    }
    if (-corners[i][2] > kNear) outline.add(corners[i]);
  }
  // where edges cross the near plane
  for (int i = 0; i < 8; ++i) {
    for (int k = 0; k < 3; ++k) {
      const int j = i | 1 << k;
      if (j == i || (-corners[i][2] > kNear) == (-corners[j][2] > kNear)) continue;
      const double part = (-kNear - corners[i][2]) / (corners[j][2] - corners[i][2]);
      Vec3 cut{};
      for (std::size_t m = 0; m < 2; ++m) cut[m] = corners[i][m] + part * (corners[j][m] - corners[i][m]);
      cut[2] = -kNear;
      outline.add(cut);
    }
  }
  return outline;
}

/// Within [0, limit]; NaN, of a simulation that broke down, is 0.
std::int32_t pixel(double x, std::int64_t limit) {
  if (!(x > 0)) return 0;
  return static_cast<std::int32_t>(std::min(x, static_cast<double>(limit)));
}

/// Puts the outline's pixels into g, with one to spare on each side; false when it covers none.
bool place(const Outline& outline, double focal, const RenderImages& out, TraceGeom& g) {
  if (!outline.is_seen) return false;
  const double cx = 0.5 * static_cast<double>(out.width) - 0.5, cy = 0.5 * static_cast<double>(out.height) - 0.5;
  g.x_begin = pixel(std::floor(cx + focal * outline.left), out.width);
  g.x_end = pixel(std::ceil(cx + focal * outline.right) + 1, out.width);
  g.y_begin = pixel(std::floor(cy - focal * outline.high), out.height);
  g.y_end = pixel(std::ceil(cy - focal * outline.low) + 1, out.height);
  // f32 errors of the exact depth must not make it "nearer"
  g.nearest = static_cast<float>(outline.nearest * (1 - 1e-4));
  return g.x_begin < g.x_end && g.y_begin < g.y_end;
}

/// Turns the shape into the camera's view. False when nothing of it can be seen.
bool prepare(const RenderGeom& geom, const GeomPose& pose, const RenderCamera& camera, double focal,
             const RenderImages& out, TraceGeom& g) {
  const auto at = [](const std::array<float, 9>& m, std::size_t i, std::size_t j) {
    return static_cast<double>(m[3 * i + j]);
  };
  double turn[3][3] = {}, axes[3][3] = {};
  Vec3 centre{}, origin{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t k = 0; k < 3; ++k) {
      const double step = static_cast<double>(camera.pose.position[k]) - static_cast<double>(pose.position[k]);
      centre[i] -= at(camera.pose.rotation, k, i) * step;
      origin[i] += at(pose.rotation, k, i) * step;
      for (std::size_t j = 0; j < 3; ++j) turn[i][j] += at(pose.rotation, k, i) * at(camera.pose.rotation, k, j);
    }
  }
  g.is_endless = geom.kind == GeomKind::plane && geom.size[0] <= 0 && geom.size[1] <= 0;
  if (geom.kind == GeomKind::plane && !(origin[2] > 0)) return false;
  if (g.is_endless) {
    g.x_begin = g.y_begin = 0;
    g.x_end = static_cast<std::int32_t>(out.width);
    g.y_end = static_cast<std::int32_t>(out.height);
    g.nearest = RayRenderer::kNear;
  } else {
    // a sphere looks the same in every frame: take the camera's, whose box is tightest
    const bool is_round = geom.kind == GeomKind::sphere;
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) axes[j][i] = is_round ? (i == j ? 1.0 : 0.0) : turn[i][j];
    }
    if (!place(outline_of(centre, axes, half_lengths(geom)), focal, out, g)) return false;
  }
  const double start = geom.kind == GeomKind::plane ? 0.0 : std::max(-centre[2], 0.0);
  g.kind = geom.kind;
  g.is_checkered = geom.is_checkered && geom.kind == GeomKind::plane;
  g.start = static_cast<float>(start);
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) g.turn[i][j] = static_cast<float>(turn[i][j]);
    for (std::size_t j = 0; j < 2; ++j) g.moved[i][j] = static_cast<float>(start * turn[i][j]);
    g.moved[i][2] = static_cast<float>(origin[i] - start * turn[i][2]);
    g.size[i] = geom.size[i];
    g.inverse_size[i] = geom.size[i] > 0 ? 1.0F / geom.size[i] : 0.0F;
    g.rgb[i] = 255.0F * std::clamp(geom.rgb[i], 0.0F, 1.0F);
  }
  g.label = geom.label;
  return true;
}

}  // namespace

RayRenderer::RayRenderer() : RayRenderer(*trace_codes().front()) {}
RayRenderer::RayRenderer(const TraceCode& code) : code_(&code) {}

void RayRenderer::draw(std::span<const RenderGeom> geoms, std::span<const GeomPose> poses, const RenderCamera& camera,
                       const RenderImages& out) {
  if (out.width < 1 || out.height < 1) return;
  const auto padded = static_cast<std::size_t>((out.width + 15) / 16 * 16);
  if (row_depth_.size() < padded) {
    row_depth_.resize(padded);
    row_color_.resize(padded);
  }
  const double focal = 0.5 * static_cast<double>(out.height) / std::tan(0.5 * static_cast<double>(camera.fovy));
  seen_.clear();
  order_.clear();
  for (std::size_t i = 0; i < geoms.size(); ++i) {
    TraceGeom g;
    if (!prepare(geoms[i], poses[i], camera, focal, out, g)) continue;
    order_.push_back(static_cast<std::uint32_t>(seen_.size()));
    seen_.push_back(g);
  }
  // nearest first; endless planes last, since they are behind nearly everything
  std::sort(order_.begin(), order_.end(), [this](std::uint32_t a, std::uint32_t b) {
    if (seen_[a].is_endless != seen_[b].is_endless) return seen_[b].is_endless;
    return seen_[a].nearest != seen_[b].nearest ? seen_[a].nearest < seen_[b].nearest : a < b;
  });
  ordered_.clear();
  for (const std::uint32_t i : order_) ordered_.push_back(seen_[i]);
  code_->run({.geoms = ordered_.data(),
              .num_geoms = static_cast<std::int64_t>(ordered_.size()),
              .inverse_focal = static_cast<float>(1 / focal),
              .near = kNear,
              .out = out,
              .row_depth = row_depth_.data(),
              .row_color = row_color_.data()});
}

}  // namespace troupe::env
