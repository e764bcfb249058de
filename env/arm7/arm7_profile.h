#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "env/arm7/arm7_control.h"
#include "env/arm7/arm7_task.h"
#include "env/env_options.h"
#include "env/env_spec.h"

namespace troupe {

/// How one field of an observation is made.
struct Arm7Output {
  enum class Kind : std::uint8_t {
    state,  ///< proprio, then the task's part
    proprio,  ///< 25: joint angles 7, speeds 7, fingers 2, tcp position 3, tcp quat 4 (w >= 0), gripper told to open -1 or
              ///< close 1, remaining fraction of the episode
    tool,     ///< 8: tcp position 3, rotation vector 3, fingers 2
    joints,   ///< 7
    gripper,  ///< 1: 0 open, 1 closed
    rgb,
    depth,
    labels,
  };
  Kind kind = Kind::state;
  std::string camera;  ///< of pictures
  std::int64_t width = 0, height = 0;
};

/// A set of observations and actions: `state` (the default), `pixel`, `libero` or `droid` (sim.md 4.2).
struct Arm7Profile {
  EnvSpec spec;
  std::vector<Arm7Output> outputs;  ///< of each spec.observation
  Arm7Control control = Arm7Control::joint;
  double timestep = 0.005;  ///< seconds
  bool ends_on_success = false;
  bool is_sparse = false;  ///< reward 1 in the step in which the task is solved, else 0
};

inline constexpr std::size_t kArm7Proprio = 25;

/// The profile of an id such as "arm7/lift-v1". Options:
///   terminate_on_success   true or false
///   sparse                 true or false; ends episodes on success too
///   seg                    true or false: a field "seg.<camera>" (arm7_label) for each camera of the profile
///   image_size             pixels, 8 to 1024: side of the square pictures of pixel (84) and libero (256)
/// Errors: invalid_argument for what is unknown.
Result<Arm7Profile> make_arm7_profile(const std::string& id, Arm7Task task, const EnvOptions& options);

}  // namespace troupe
