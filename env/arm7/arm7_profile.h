#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "env/arm7/arm7_control.h"
#include "env/arm7/arm7_task.h"
#include "env/env_options.h"
#include "env/env_spec.h"

namespace troupe::env {

/// How one field of an observation is made.
struct Arm7Output {
  enum class Kind : std::uint8_t {
    /// Proprio, then the task's part.
    state,
    /// 25: joint angles 7, speeds 7, fingers 2, tcp position 3, tcp quat 4 (w >= 0), gripper told to open -1 or close
    /// 1, remaining fraction of the episode.
    proprio,
    /// The task's part: what reward and success are made of, such as the goal.
    task,
    /// 8: tcp position 3, rotation vector 3, fingers 2.
    tool,
    /// 7.
    joints,
    /// 1: 0 open, 1 closed.
    gripper,
    rgb,
    depth,
    labels,
    /// The episode's instruction, zero padded.
    text,
  };
  Kind kind = Kind::state;
  /// Of images.
  std::string camera;
  std::int64_t width = 0, height = 0;
};

/// A set of observations and actions: `state` (the default), `pixel`, `views`, `frames` (what `troupe record` writes
/// of the camera `front`: its frame and the whole state), `libero` or `droid`.
struct Arm7Profile {
  /// Observation fields in the order of `outputs`.
  EnvSpec spec;
  /// Of each spec.observation.
  std::vector<Arm7Output> outputs;
  Arm7Control control = Arm7Control::joint;
  /// Colours are drawn at so many times the width and height of their field and resized (Arm7Painter).
  std::int64_t supersample = 1;
  /// Seconds.
  double timestep = 0.005;
  bool ends_on_success = false;
  /// Reward 1 in the step in which the task is solved, else 0.
  bool is_sparse = false;
};

inline constexpr std::size_t kArm7Proprio = 25;
/// Room for the longest instruction.
inline constexpr std::int64_t kArm7InstructionBytes = 64;

/// The profile of an id such as "arm7/lift-v1". Options:
///   terminate_on_success   true or false
///   sparse                 true or false; ends episodes on success too
///   seg                    true or false: a field "seg.<camera>" (arm7_label) for each camera of the profile
///   instruction            true or false: a text field "instruction", what is to be done
///   image_size             pixels, 8 to 1024: side of the square images: pixel 84, views and frames 64, libero 256
///   supersample            1 (the default), 2 or 4: colours are drawn at so many times the size and resized as
///                          recorded pictures are (Arm7Painter)
/// Errors: invalid_argument for what is unknown.
Result<Arm7Profile> make_arm7_profile(const std::string& id, Arm7Task task, const EnvOptions& options);

}  // namespace troupe::env
