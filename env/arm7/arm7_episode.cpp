#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/random.h"
#include "env/arm7/arm7_model.h"
#include "env/arm7/arm7_task.h"
#include "env/episode_seed.h"

namespace troupe::env {
namespace {

constexpr double kJointNoise = 0.02;  // rad
constexpr double kYaw = std::numbers::pi;

struct Range {
  double low, high;
  double draw(CounterRng& rng) const { return rng.uniform(low, high); }
  bool holds(double v) const { return v >= low && v <= high; }
};
constexpr Range kReachX{0.35, 0.65}, kReachY{-0.3, 0.3}, kReachZ{0.05, 0.4};
constexpr Range kCubeX{0.4, 0.6}, kCubeY{-0.15, 0.15}, kPlaceZ{0.02, 0.3};
constexpr Range kPushFar{0.10, 0.25};
constexpr Range kTableX{0.35, 0.65}, kTableY{-0.3, 0.3};  // where push has its goals

// not green, which is the goal's
constexpr Arm7Color kColors[] = {{"red", {0.85F, 0.15F, 0.15F}},
                                 {"blue", {0.15F, 0.30F, 0.85F}},
                                 {"yellow", {0.90F, 0.80F, 0.15F}},
                                 {"purple", {0.55F, 0.20F, 0.70F}}};

constexpr std::string_view kReachPhrases[kArm7Phrases] = {"move the gripper to the green ball",
                                                          "reach the green ball",
                                                          "bring the hand to the green sphere",
                                                          "touch the green marker with the gripper",
                                                          "go to the green target",
                                                          "place the fingertips at the green ball",
                                                          "guide the arm to the green sphere",
                                                          "point the gripper at the green marker and stop there"};
constexpr std::string_view kPushPhrases[kArm7Phrases] = {"push the {} cube to the green marker",
                                                         "slide the {} block onto the green target",
                                                         "shove the {} cube until it is on the green spot",
                                                         "move the {} block along the table to the green marker",
                                                         "nudge the {} cube towards the green target",
                                                         "push the {} block across the table to the green spot",
                                                         "get the {} cube to the green marker without lifting it",
                                                         "slide the {} cube over to the green target"};
constexpr std::string_view kLiftPhrases[kArm7Phrases] = {"lift the {} cube",
                                                         "pick up the {} block",
                                                         "raise the {} cube off the table",
                                                         "grasp the {} block and lift it",
                                                         "take the {} cube from the table",
                                                         "hold the {} block up in the air",
                                                         "grab the {} cube and raise it",
                                                         "pick the {} cube up from the table"};
constexpr std::string_view kPlacePhrases[kArm7Phrases] = {"put the {} cube at the green ball",
                                                          "pick up the {} block and bring it to the green marker",
                                                          "carry the {} cube to the green target",
                                                          "move the {} block to the green sphere and hold it there",
                                                          "grasp the {} cube and place it at the green marker",
                                                          "take the {} block to the green ball",
                                                          "bring the {} cube to the green target and keep it still",
                                                          "lift the {} block over to the green sphere"};

std::span<const std::string_view> phrases(Arm7Task task) {
  switch (task) {
    case Arm7Task::reach:
      return kReachPhrases;
    case Arm7Task::push:
      return kPushPhrases;
    case Arm7Task::lift:
      return kLiftPhrases;
    case Arm7Task::pick_place:
      return kPlacePhrases;
  }
  return {};
}

/// A point on the table, kPushFar from the cube.
Arm7Vec push_goal(const Arm7Vec& cube, CounterRng& rng) {
  constexpr int kTries = 64;  // about one in four falls outside
  for (int i = 0; i < kTries; ++i) {
    const double angle = rng.uniform(-kYaw, kYaw), far = kPushFar.draw(rng);
    const Arm7Vec goal{cube[0] + far * std::cos(angle), cube[1] + far * std::sin(angle), 0};
    if (kTableX.holds(goal[0]) && kTableY.holds(goal[1])) return goal;
  }
  return {cube[0], cube[1] + (cube[1] < 0 ? kPushFar.low : -kPushFar.low), 0};
}

}  // namespace

std::span<const Arm7Color> arm7_colors() { return kColors; }

Arm7Episode make_arm7_episode(Arm7Task task, std::uint64_t seed) {
  CounterRng rng(seed, env_stream::reset, 0);
  Arm7Episode episode;
  for (std::size_t j = 0; j < kArm7Joints; ++j) {
    const double q = kArm7Home[j] + kJointNoise * static_cast<double>(rng.normal());
    episode.joints[j] = std::clamp(q, kArm7JointLow[j], kArm7JointHigh[j]);
  }
  if (has_cube(task)) {
    episode.cube = {kCubeX.draw(rng), kCubeY.draw(rng), kCubeHalf};
    episode.cube_yaw = rng.uniform(-kYaw, kYaw);
  }
  if (task == Arm7Task::reach) episode.goal = {kReachX.draw(rng), kReachY.draw(rng), kReachZ.draw(rng)};
  if (task == Arm7Task::push) episode.goal = push_goal(episode.cube, rng);
  if (task == Arm7Task::pick_place) episode.goal = {kCubeX.draw(rng), kCubeY.draw(rng), kPlaceZ.draw(rng)};
  episode.color = rng.below(static_cast<std::uint32_t>(std::size(kColors)));
  episode.phrase = rng.below(kArm7Phrases);
  return episode;
}

std::string arm7_instruction(Arm7Task task, const Arm7Episode& episode) {
  return fmt::format(fmt::runtime(phrases(task)[episode.phrase % kArm7Phrases]),
                     kColors[episode.color % std::size(kColors)].name);
}

}  // namespace troupe::env
