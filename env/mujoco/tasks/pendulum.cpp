// InvertedPendulum and InvertedDoublePendulum: a cart keeps one or two poles upright. In v5 nothing is paid on the step
// that ends the episode.
#include <algorithm>
#include <cmath>
#include <utility>

#include "env/mujoco/gym_task.h"
#include "env/mujoco/models/models.h"

namespace troupe::env {
namespace {

class InvertedPendulumEnv final : public GymEnv {
 public:
  using Constants = GymVersion;
  InvertedPendulumEnv(std::shared_ptr<const GymModel> shared, MujocoData data, const Constants& constants)
      : GymEnv(std::move(shared), std::move(data), {.scale = 0.01}), v5_(constants.v5) {}

 private:
  static constexpr double kAngle = 0.2;

  Outcome evaluate(std::span<const float>, std::span<double> info) override {
    const auto finite = [](double v) { return std::isfinite(v); };
    const bool upright = std::all_of(qpos().begin(), qpos().end(), finite) &&
                         std::all_of(qvel().begin(), qvel().end(), finite) && std::abs(qpos()[1]) <= kAngle;
    const double reward = upright || !v5_ ? 1 : 0;
    std::fill(info.begin(), info.end(), reward);
    return {reward, !upright};
  }
  void observe_into(std::span<double> out) const override {
    std::copy(qvel().begin(), qvel().end(), std::copy(qpos().begin(), qpos().end(), out.begin()));
  }

  const bool v5_;
};

class InvertedDoublePendulumEnv final : public GymEnv {
 public:
  using Constants = GymVersion;
  InvertedDoublePendulumEnv(std::shared_ptr<const GymModel> shared, MujocoData data, const Constants& constants)
      : GymEnv(std::move(shared), std::move(data), {.scale = 0.1, .normal_velocities = true}),
        v5_(constants.v5),
        tip_(mujoco_id(model(), mjOBJ_SITE, "tip")) {}

 private:
  static constexpr double kAlive = 10, kBound = 10;

  Outcome evaluate(std::span<const float>, std::span<double> info) override {
    const double x = data().site_xpos[3 * tip_], height = data().site_xpos[3 * tip_ + 2];
    const double w1 = qvel()[1], w2 = qvel()[2];
    const bool fallen = height <= 1;
    const double distance = 0.01 * x * x + (height - 2) * (height - 2), velocity = 1e-3 * w1 * w1 + 5e-3 * w2 * w2;
    const double alive = fallen && v5_ ? 0 : kAlive;
    const double values[] = {alive, -distance, -velocity};
    std::copy_n(values, info.size(), info.begin());
    return {alive - distance - velocity, fallen};
  }
  /// v5 leaves out the constraint forces of the hinges, which are always zero.
  void observe_into(std::span<double> out) const override {
    const auto q = qpos(), v = qvel();
    const double* f = data().qfrc_constraint;
    const auto bounded = [](double value) { return std::clamp(value, -kBound, kBound); };
    const double values[] = {q[0],           std::sin(q[1]), std::sin(q[2]), std::cos(q[1]),
                             std::cos(q[2]), bounded(v[0]),  bounded(v[1]),  bounded(v[2]),
                             bounded(f[0]),  bounded(f[1]),  bounded(f[2])};
    std::copy_n(values, out.size(), out.begin());
  }

  const bool v5_;
  const int tip_;
};

}  // namespace

std::vector<GymTask> pendulum_tasks() {
  const GymTask one{.id = "InvertedPendulum-v4",
                    .mjcf = gym_models::inverted_pendulum,
                    .make = make_gym_env<InvertedPendulumEnv, kV4>,
                    .frame_skip = 2,
                    .observation_size = 4,
                    .info = {},
                    .reward_threshold = 950};
  GymTask one5 = one;
  one5.id = "InvertedPendulum-v5";
  one5.make = make_gym_env<InvertedPendulumEnv, kV5>;
  one5.info = {"reward_survive"};
  const GymTask two{.id = "InvertedDoublePendulum-v4",
                    .mjcf = gym_models::inverted_double_pendulum,
                    .make = make_gym_env<InvertedDoublePendulumEnv, kV4>,
                    .frame_skip = 5,
                    .observation_size = 11,
                    .info = {},
                    .reward_threshold = 9100};
  GymTask two5 = two;
  two5.id = "InvertedDoublePendulum-v5";
  two5.make = make_gym_env<InvertedDoublePendulumEnv, kV5>;
  two5.observation_size = 9;
  two5.info = {"reward_survive", "distance_penalty", "velocity_penalty"};
  return {one, one5, two, two5};
}

}  // namespace troupe::env
