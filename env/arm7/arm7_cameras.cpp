#include "env/arm7/arm7_cameras.h"

#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/check.h"

namespace troupe::env {
namespace {

constexpr std::string_view kNames[] = {"front", "side", "wrist", "ext0", "ext1"};

constexpr float radians(double degrees) { return static_cast<float>(degrees * std::numbers::pi / 180); }

Arm7Vec cross(const Arm7Vec& a, const Arm7Vec& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
Arm7Vec unit(const Arm7Vec& v) {
  const double length = std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
  return {v[0] / length, v[1] / length, v[2] / length};
}

GeomPose pose_of(const Arm7Vec& position, const Arm7Vec& x, const Arm7Vec& y) {
  const Arm7Vec right = unit(x), back = unit(cross(right, y)), up = cross(back, right);
  GeomPose pose;
  for (std::size_t k = 0; k < 3; ++k) {
    pose.position[k] = static_cast<float>(position[k]);
    pose.rotation[3 * k] = static_cast<float>(right[k]);
    pose.rotation[3 * k + 1] = static_cast<float>(up[k]);
    pose.rotation[3 * k + 2] = static_cast<float>(back[k]);
  }
  return pose;
}

/// From `position` towards `target`, the image's upper edge level.
GeomPose looking_at(const Arm7Vec& position, const Arm7Vec& target) {
  const Arm7Vec back = unit({position[0] - target[0], position[1] - target[1], position[2] - target[2]});
  const Arm7Vec right = unit(cross({0, 0, 1}, back));
  return pose_of(position, right, cross(back, right));
}

GeomPose on_hand(const Arm7Model& arm, const mjData& data, const Arm7Vec& position, const Arm7Vec& x,
                 const Arm7Vec& y) {
  const mjtNum* origin = data.xpos + 3 * arm.hand_body;
  const mjtNum* turn = data.xmat + 9 * arm.hand_body;
  const auto turned = [turn](const Arm7Vec& v) {
    Arm7Vec out{};
    for (std::size_t i = 0; i < 3; ++i) out[i] = turn[3 * i] * v[0] + turn[3 * i + 1] * v[1] + turn[3 * i + 2] * v[2];
    return out;
  };
  Arm7Vec at = turned(position);
  for (std::size_t k = 0; k < 3; ++k) at[k] += origin[k];
  return pose_of(at, turned(x), turned(y));
}

}  // namespace

std::span<const std::string_view> arm7_camera_names() { return kNames; }

std::optional<RenderCamera> arm7_camera(const Arm7Model& arm, const mjData& data, std::string_view name) {
  if (name == "front") return RenderCamera{pose_of({1.35, 0, 0.75}, {0, 1, 0}, {-0.6, 0, 0.8}), radians(50)};
  if (name == "side") return RenderCamera{pose_of({0.5, -1, 0.6}, {1, 0, 0}, {0, 0.5, 0.866}), radians(50)};
  if (name == "wrist")
    return RenderCamera{on_hand(arm, data, {0.07, 0, 0.01}, {0, 1, 0}, {0.9659, 0, 0.2588}), radians(75)};
  if (name == "ext0") return RenderCamera{looking_at({0.45, -0.75, 0.55}, {0.5, 0, 0.05}), radians(55)};
  if (name == "ext1") return RenderCamera{looking_at({0.45, 0.75, 0.55}, {0.5, 0, 0.05}), radians(55)};
  return std::nullopt;
}

Arm7Painter::Arm7Painter(const Arm7Model& arm) : arm_(&arm), looks_(arm.looks), poses_(arm.looks.size()) {}

void Arm7Painter::set_cube_color(const std::array<float, 3>& rgb) {
  if (arm_->drawn_cube >= 0) looks_[static_cast<std::size_t>(arm_->drawn_cube)].rgb = rgb;
}

void Arm7Painter::look(const mjData& data) {
  for (std::size_t i = 0; i < poses_.size(); ++i) {
    const int geom = arm_->drawn[i];
    for (std::size_t k = 0; k < 3; ++k)
      poses_[i].position[k] = static_cast<float>(data.geom_xpos[3 * geom + static_cast<int>(k)]);
    for (std::size_t k = 0; k < 9; ++k)
      poses_[i].rotation[k] = static_cast<float>(data.geom_xmat[9 * geom + static_cast<int>(k)]);
  }
}

void Arm7Painter::draw(const RenderCamera& camera, const RenderImages& out, std::int64_t supersample) {
  if (supersample == 1 || out.rgb == nullptr) {
    renderer_.draw(looks_, poses_, camera, out);
    return;
  }
  draw_resized(camera, out, supersample);
  RenderImages others = out;
  others.rgb = nullptr;
  if (others.depth != nullptr || others.labels != nullptr) renderer_.draw(looks_, poses_, camera, others);
}

void Arm7Painter::draw_resized(const RenderCamera& camera, const RenderImages& out, std::int64_t supersample) {
  const std::int64_t width = supersample * out.width, height = supersample * out.height;
  large_.resize(static_cast<std::size_t>(3 * width * height));
  renderer_.draw(looks_, poses_, camera, {.width = width, .height = height, .rgb = large_.data()});
  if (!resize_ || resize_->canvas_width() != out.width || resize_->canvas_height() != out.height) {
    auto made = ImageChain::make({.height = out.height, .width = out.width}, "single", 1);
    TROUPE_CHECK(made.has_value(), "one view makes one picture");
    resize_.emplace(std::move(*made));
  }
  const auto resized = resize_->run_view(
      0, Rgb8View{large_.data(), height, width, static_cast<std::ptrdiff_t>(3 * width)},
      {.height = height, .width = width}, {out.rgb, static_cast<std::size_t>(resize_->canvas_bytes())});
  TROUPE_CHECK(resized.has_value(), "the crop is the whole picture");
}

}  // namespace troupe::env
