#include <algorithm>

#include "data/toy/toy_arm.h"
#include "image/raster.h"

namespace troupe::data {

namespace {

constexpr double kFingerGap = 0.11;  // m
constexpr RgbColor kBallColors[4] = {
    {0.86f, 0.16f, 0.16f}, {0.18f, 0.68f, 0.26f}, {0.18f, 0.36f, 0.88f}, {0.95f, 0.80f, 0.16f}};
constexpr RgbColor kArm[3] = {{0.80f, 0.34f, 0.08f}, {0.84f, 0.42f, 0.14f}, {0.86f, 0.50f, 0.22f}};
constexpr RgbColor kDark = {0.20f, 0.22f, 0.26f};

struct Projected {
  double x, y, scale;  // pixels; pixels per metre at that place
};

struct Projection {
  ToyCamera camera;
  double height, width;

  /// The window is 2 m wide and high; the table line lies at 78% of the height.
  Projected operator()(ToyPoint p) const {
    const double pixels = std::min(width, height) / 2, ground = 0.78 * height;
    if (camera == ToyCamera::front) return {width / 2 + p.x * pixels, ground - p.y * pixels, pixels};
    // the camera stands to the right: what is there is nearer, hence larger
    const double near = 1 / (1 - 0.28 * p.x);
    return {width / 2 + 0.62 * p.x * near * pixels, ground - 0.06 * height + (0.14 * p.x - p.y) * near * pixels,
            near * pixels};
  }
};

void link(image::Raster& out, const Projection& project, ToyPoint a, ToyPoint b, double radius, const RgbColor& color) {
  const Projected p = project(a), q = project(b);
  out.capsule(p.x, p.y, radius * p.scale, q.x, q.y, radius * q.scale, color);
}

void ball(image::Raster& out, const Projection& project, ToyPoint at, std::int64_t color) {
  const Projected floor_point = project({at.x, 0}), p = project(at);
  // the shadow shrinks as the ball rises
  const double half = kBallRadius * floor_point.scale * std::clamp(1.2 - 0.8 * at.y, 0.4, 1.1);
  out.capsule(floor_point.x - half, floor_point.y, 0.035 * floor_point.scale, floor_point.x + half, floor_point.y,
              0.035 * floor_point.scale, kDark, 0.4);
  out.ball(p.x, p.y, kBallRadius * p.scale, kBallColors[static_cast<std::size_t>(color)]);
}

void gripper(image::Raster& out, const Projection& project, const std::array<ToyPoint, 4>& points, double opening) {
  const ToyPoint tip = points[3];
  const double dx = (points[3].x - points[2].x) / 0.22, dy = (points[3].y - points[2].y) / 0.22;
  const double half = kFingerGap * (0.75 + 0.55 * opening);
  const ToyPoint left{tip.x - dy * half, tip.y + dx * half}, right{tip.x + dy * half, tip.y - dx * half};
  link(out, project, left, right, 0.04, kDark);
  for (const ToyPoint& base : {left, right})
    link(out, project, base, {base.x + dx * kFinger, base.y + dy * kFinger}, 0.04, kDark);
}

}  // namespace

void draw_toy_scene(const ToyEpisode& episode, std::int64_t step, ToyCamera camera, std::int64_t height,
                    std::int64_t width, image::Raster& out) {
  const Projection project{camera, static_cast<double>(height), static_cast<double>(width)};
  const bool front = camera == ToyCamera::front;
  const double h = static_cast<double>(height), table = (front ? 0.74 : 0.62) * h;
  out.band(-1, table, front ? RgbColor{0.80f, 0.87f, 0.93f} : RgbColor{0.88f, 0.85f, 0.80f},
           front ? RgbColor{0.93f, 0.95f, 0.97f} : RgbColor{0.95f, 0.93f, 0.90f});
  out.band(table, h + 1, RgbColor{0.72f, 0.62f, 0.50f}, RgbColor{0.58f, 0.48f, 0.38f});

  const auto points = toy_arm_points(episode.states[static_cast<std::size_t>(step)]);
  const double opening = static_cast<double>(episode.states[static_cast<std::size_t>(step)][3]);
  ToyPoint target = episode.target;
  if (step >= episode.grasped_at) {
    const double stretch = kFinger / 0.22;
    target = {points[3].x + (points[3].x - points[2].x) * stretch, points[3].y + (points[3].y - points[2].y) * stretch};
  }
  ball(out, project, episode.other, episode.other_color);
  ball(out, project, target, episode.target_color);
  link(out, project, {-0.16, 0.04}, {0.16, 0.04}, 0.06, kDark);
  for (std::size_t i = 0; i < 3; ++i)
    link(out, project, points[i], points[i + 1], 0.1 - 0.015 * static_cast<double>(i), kArm[i]);
  for (std::size_t i = 0; i < 3; ++i) {
    const Projected joint = project(points[i]);
    out.ball(joint.x, joint.y, 0.04 * joint.scale, kDark);
  }
  gripper(out, project, points, opening);
}

}  // namespace troupe::data
