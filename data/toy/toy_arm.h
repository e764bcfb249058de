#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "image/raster.h"
#include "image/video_frame.h"

namespace troupe::data {

/// Radius of the ball and length of a finger, in metres of the toy scene.
inline constexpr double kBallRadius = 0.11, kFinger = 0.14;

struct ToyPoint {
  double x = 0, y = 0;  ///< metres; the arm stands at the origin on the table line y = 0
};

/// Joint angles in radians (each relative to the link before, the first to the table) and gripper opening 0 (closed)
/// .. 1.
using ToyPose = std::array<float, 4>;

/// One scripted episode: a planar three-joint arm picks up one of two coloured balls.
struct ToyEpisode {
  std::int64_t target_color = 0, other_color = 0;  ///< index into kToyColors
  ToyPoint target{}, other{};                      ///< balls at rest
  std::int64_t grasped_at = 0;                     ///< from this step on the ball moves with the gripper
  std::vector<ToyPose> states{};                   ///< one per step
  /// The commanded next pose: actions[t] == states[t + 1], and the last pose is held.
  std::vector<ToyPose> actions{};
  std::string task() const;  ///< "pick up the red ball on the left"
};

inline constexpr std::array<const char*, 4> kToyColors = {"red", "green", "blue", "yellow"};
/// The instruction for a ball of a colour, left (x < 0) or right of the arm as the front camera sees it.
std::string toy_task(std::int64_t color, bool left);

/// A pure function of its arguments: positions, colours and the start pose come from stream toy_scene at
/// `episode_index`; the motion is minimum-jerk in joint space through approach, descent, grasp and lift.
ToyEpisode plan_toy_episode(std::uint64_t seed, std::int64_t episode_index, std::int64_t steps);

/// Ends of the three links, starting with the base.
std::array<ToyPoint, 4> toy_arm_points(const ToyPose& pose);

enum class ToyCamera : std::uint8_t { front, side };
/// Draws step `step` as the camera sees it: front is orthographic, side looks along the table in perspective.
void draw_toy_scene(const ToyEpisode& episode, std::int64_t step, ToyCamera camera, std::int64_t height,
                    std::int64_t width, image::Raster& out);

}  // namespace troupe::data
