// HalfCheetah and Swimmer: reward for speed along x, minus the cost of control; they never end.
#include <algorithm>
#include <cmath>
#include <utility>

#include "env/mujoco/gym_task.h"
#include "env/mujoco/models/models.h"

namespace troupe::env {
namespace {

class RunnerEnv final : public GymEnv {
 public:
  struct Constants {
    float control_weight;
    std::size_t hidden;      ///< first positions that the observation leaves out
    bool normal_velocities;  ///< of the reset
  };
  RunnerEnv(std::shared_ptr<const GymModel> shared, MujocoData data, const Constants& constants)
      : GymEnv(std::move(shared), std::move(data), {.scale = 0.1, .normal_velocities = constants.normal_velocities}),
        c_(constants) {}

 private:
  void before_step(std::span<const float>) override {
    x_ = qpos()[0];
    y_ = qpos()[1];
  }
  /// HalfCheetah's info ends after reward_ctrl; for Swimmer y is a position like x.
  Outcome evaluate(std::span<const float> action, std::span<double> info) override {
    const double x = qpos()[0], y = qpos()[1];
    const double velocity = (x - x_) / dt(), cost = control_cost(c_.control_weight, action);
    const double values[] = {x, velocity, velocity, -cost, y, (y - y_) / dt(), std::sqrt(x * x + y * y), velocity};
    std::copy_n(values, info.size(), info.begin());
    return {velocity - cost, false};
  }
  void observe_into(std::span<double> out) const override {
    const auto next = std::copy(qpos().begin() + static_cast<std::ptrdiff_t>(c_.hidden), qpos().end(), out.begin());
    std::copy(qvel().begin(), qvel().end(), next);
  }

  const Constants& c_;
  double x_ = 0, y_ = 0;
};

constexpr RunnerEnv::Constants kCheetah{.control_weight = 0.1f, .hidden = 1, .normal_velocities = true};
constexpr RunnerEnv::Constants kSwimmer{.control_weight = 1e-4f, .hidden = 2, .normal_velocities = false};

}  // namespace

std::vector<GymTask> runner_tasks() {
  const GymTask cheetah{.id = "HalfCheetah-v4",
                        .mjcf = gym_models::half_cheetah,
                        .make = make_gym_env<RunnerEnv, kCheetah>,
                        .frame_skip = 5,
                        .observation_size = 17,
                        .info = {"x_position", "x_velocity", "reward_run", "reward_ctrl"},
                        .reward_threshold = 4800};
  GymTask cheetah5 = cheetah;
  cheetah5.id = "HalfCheetah-v5";
  cheetah5.info = {"x_position", "x_velocity", "reward_forward", "reward_ctrl"};
  const GymTask swimmer{.id = "Swimmer-v4",
                        .mjcf = gym_models::swimmer,
                        .make = make_gym_env<RunnerEnv, kSwimmer>,
                        .frame_skip = 4,
                        .observation_size = 8,
                        .info = {"x_position", "x_velocity", "reward_fwd", "reward_ctrl", "y_position", "y_velocity",
                                 "distance_from_origin", "forward_reward"},
                        .reward_threshold = 360};
  GymTask swimmer5 = swimmer;
  swimmer5.id = "Swimmer-v5";
  swimmer5.info = {"x_position", "x_velocity", "reward_forward",      "reward_ctrl",
                   "y_position", "y_velocity", "distance_from_origin"};
  return {cheetah, cheetah5, swimmer, swimmer5};
}

}  // namespace troupe::env
