#include "data/toy/toy_arm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "base/random.h"

namespace troupe::data {

namespace {

constexpr double kPi = std::numbers::pi;
constexpr double kLink[3] = {0.5, 0.45, 0.22};  // m
constexpr double kBaseHeight = 0.12;
constexpr double kFarthest = 0.75;  // m; from 0.77 on the place above a ball is out of reach

/// Joint angles that put the end of the last link at `tip`, pointing down, elbow up; mirrored for targets to the left.
std::array<double, 3> reach_down(ToyPoint tip) {
  const double side = tip.x < 0 ? -1 : 1;
  const double x = std::abs(tip.x), y = tip.y + kLink[2] - kBaseHeight, distance = std::hypot(x, y);
  TROUPE_CHECK(distance < kLink[0] + kLink[1], "toy targets lie within the arm's reach");
  const auto angle = [&](double a, double b, double opposite) {
    return std::acos(std::clamp((a * a + b * b - opposite * opposite) / (2 * a * b), -1.0, 1.0));
  };
  const double first = std::atan2(y, x) + angle(distance, kLink[0], kLink[1]);
  const double second = angle(kLink[0], kLink[1], distance) - kPi;  // relative to the first link
  const double third = -kPi / 2 - first - second;
  return {side > 0 ? first : kPi - first, side * second, side * third};
}

struct Waypoint {
  double at;  // share of the episode
  std::array<double, 4> pose;
};

double minimum_jerk(double t) { return t * t * t * (10 + t * (6 * t - 15)); }

ToyPose pose_at(const std::vector<Waypoint>& path, double at) {
  std::size_t i = 1;
  while (i + 1 < path.size() && at > path[i].at) ++i;
  const Waypoint &a = path[i - 1], &b = path[i];
  const double s = minimum_jerk(std::clamp((at - a.at) / (b.at - a.at), 0.0, 1.0));
  ToyPose pose{};
  for (std::size_t j = 0; j < pose.size(); ++j) pose[j] = static_cast<float>(a.pose[j] + s * (b.pose[j] - a.pose[j]));
  return pose;
}

std::array<double, 4> with_grip(const std::array<double, 3>& joints, double grip) {
  return {joints[0], joints[1], joints[2], grip};
}

}  // namespace

std::string toy_task(std::int64_t color, bool left) {
  return fmt::format("pick up the {} ball on the {}", kToyColors.at(static_cast<std::size_t>(color)),
                     left ? "left" : "right");
}
std::string ToyEpisode::task() const { return toy_task(target_color, target.x < 0); }

ToyEpisode plan_toy_episode(std::uint64_t seed, std::int64_t episode_index, std::int64_t steps) {
  CounterRng rng(seed, rng_stream::toy_scene, static_cast<std::uint64_t>(episode_index));
  ToyEpisode e;
  // colours go round robin, so that every task appears even in a small set
  e.target_color = episode_index % static_cast<std::int64_t>(kToyColors.size());
  e.other_color = (e.target_color + 1 + rng.below(3)) % static_cast<std::int64_t>(kToyColors.size());
  const double side = rng.below(2) == 0 ? -1 : 1;
  e.target = {side * rng.uniform(0.4, kFarthest), kBallRadius};
  e.other = {-side * rng.uniform(0.4, kFarthest), kBallRadius};
  // the arm starts near upright, so that only the words and the frame tell where it will go
  const std::array<double, 4> home = {kPi / 2 + rng.uniform(-0.2, 0.2), rng.uniform(-0.3, 0.3), rng.uniform(-0.3, 0.3),
                                      1};
  const double grasp_height = e.target.y + kFinger;
  const auto above = reach_down({e.target.x, grasp_height + 0.2}), grasp = reach_down({e.target.x, grasp_height});
  const auto lifted = reach_down({side * 0.4, 0.62});
  const std::vector<Waypoint> path = {{0, home},
                                      {0.42, with_grip(above, 1)},
                                      {0.60, with_grip(grasp, 1)},
                                      {0.70, with_grip(grasp, 0)},
                                      {0.96, with_grip(lifted, 0)},
                                      {1.01, with_grip(lifted, 0)}};
  const auto last = static_cast<double>(std::max<std::int64_t>(1, steps - 1));
  for (std::int64_t t = 0; t < steps; ++t) e.states.push_back(pose_at(path, static_cast<double>(t) / last));
  e.grasped_at = static_cast<std::int64_t>(std::ceil(0.70 * last));
  e.actions.assign(e.states.begin() + std::min<std::int64_t>(1, steps), e.states.end());
  if (steps > 0) e.actions.push_back(e.states.back());
  return e;
}

std::array<ToyPoint, 4> toy_arm_points(const ToyPose& pose) {
  std::array<ToyPoint, 4> points;
  points[0] = {0, kBaseHeight};
  double direction = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    direction += static_cast<double>(pose[i]);
    points[i + 1] = {points[i].x + kLink[i] * std::cos(direction), points[i].y + kLink[i] * std::sin(direction)};
  }
  return points;
}

}  // namespace troupe::data
