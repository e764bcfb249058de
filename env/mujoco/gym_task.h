#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "env/mujoco/gym_env.h"

namespace troupe {

/// One task of the Gymnasium set: what differs between them beside the model and the rules of its GymEnv.
struct GymTask {
  std::string_view id;
  std::string (*mjcf)();
  std::unique_ptr<GymEnv> (*make)(std::shared_ptr<const GymModel> shared, MujocoData data);
  std::int64_t frame_skip;
  std::int64_t observation_size;
  std::vector<std::string> info;  ///< in the order that the env writes them
  std::int64_t max_steps = 1000;
  double reward_threshold = std::numeric_limits<double>::quiet_NaN();
  bool wants_forces = false;  ///< reads cfrc_ext
};

/// The tasks of each family of rules.
std::vector<GymTask> runner_tasks();  ///< HalfCheetah, Swimmer
std::vector<GymTask> walker_tasks();  ///< Hopper, Walker2d
std::vector<GymTask> ant_tasks();
std::vector<GymTask> humanoid_tasks();
std::vector<GymTask> reacher_tasks();
std::vector<GymTask> pusher_tasks();
std::vector<GymTask> pendulum_tasks();  ///< InvertedPendulum, InvertedDoublePendulum

/// All of them, in the order above.
std::span<const GymTask> gym_tasks();

/// The maker of a task whose rules are class `Rules` with a constructor (shared model, data, constants).
template <class Rules, const typename Rules::Constants& constants>
std::unique_ptr<GymEnv> make_gym_env(std::shared_ptr<const GymModel> shared, MujocoData data) {
  return std::make_unique<Rules>(std::move(shared), std::move(data), constants);
}

}  // namespace troupe
