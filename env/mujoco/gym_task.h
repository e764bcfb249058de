#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "env/mujoco/gym_env.h"

namespace troupe::env {

/// One task of the Gymnasium set: what differs between them beside the model and the rules of its GymEnv.
struct GymTask {
  std::string_view id;
  /// The model as MJCF text (env/mujoco/models/models.h).
  std::string (*mjcf)();
  std::unique_ptr<GymEnv> (*make)(std::shared_ptr<const GymModel> shared, MujocoData data);
  /// Physics steps per control step, and numbers of the observation.
  std::int64_t frame_skip;
  std::int64_t observation_size;
  /// In the order that the env writes them.
  std::vector<std::string> info;
  std::int64_t max_steps = 1000;
  double reward_threshold = std::numeric_limits<double>::quiet_NaN();
  /// Reads cfrc_ext.
  bool wants_forces = false;
};

/// The tasks of each family of rules.
/// HalfCheetah, Swimmer.
std::vector<GymTask> runner_tasks();
/// Hopper, Walker2d.
std::vector<GymTask> walker_tasks();
std::vector<GymTask> ant_tasks();
std::vector<GymTask> humanoid_tasks();
std::vector<GymTask> reacher_tasks();
std::vector<GymTask> pusher_tasks();
/// InvertedPendulum, InvertedDoublePendulum.
std::vector<GymTask> pendulum_tasks();

/// All of them, in the order above.
std::span<const GymTask> gym_tasks();

/// Constants of rules that differ between the versions alone.
struct GymVersion {
  bool v5;
};
inline constexpr GymVersion kV4{.v5 = false}, kV5{.v5 = true};

/// The maker of a task whose rules are class `Rules` with a constructor (shared model, data, constants).
template <class Rules, const typename Rules::Constants& constants>
std::unique_ptr<GymEnv> make_gym_env(std::shared_ptr<const GymModel> shared, MujocoData data) {
  return std::make_unique<Rules>(std::move(shared), std::move(data), constants);
}

}  // namespace troupe::env
