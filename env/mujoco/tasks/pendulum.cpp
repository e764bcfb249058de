// InvertedPendulum and InvertedDoublePendulum: a cart keeps one or two poles upright.
#include <algorithm>
#include <cmath>
#include <utility>

#include "env/mujoco/gym_task.h"
#include "env/mujoco/models/models.h"

namespace troupe::env {
namespace {

struct PoleConstants {
  bool v5;  ///< nothing is paid on the step that ends the episode
};

class InvertedPendulumEnv final : public GymEnv {
 public:
  using Constants = PoleConstants;
  InvertedPendulumEnv(std::shared_ptr<const GymModel> shared, MujocoData data, const Constants& constants)
      : GymEnv(std::move(shared), std::move(data)), v5_(constants.v5) {}

 private:
  static constexpr double kNoise = 0.01, kAngle = 0.2;

  void draw_state(CounterRng& rng, std::span<double> pos, std::span<double> vel) const override {
    add_uniform(rng, kNoise, pos);
    add_uniform(rng, kNoise, vel);
  }
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
  using Constants = PoleConstants;
  InvertedDoublePendulumEnv(std::shared_ptr<const GymModel> shared, MujocoData data, const Constants& constants)
      : GymEnv(std::move(shared), std::move(data)), v5_(constants.v5), tip_(mujoco_id(model(), mjOBJ_SITE, "tip")) {}

 private:
  static constexpr double kNoise = 0.1, kAlive = 10, kBound = 10;

  void draw_state(CounterRng& rng, std::span<double> pos, std::span<double> vel) const override {
    add_uniform(rng, kNoise, pos);
    add_normal(rng, kNoise, vel);
  }
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

constexpr PoleConstants kV4{.v5 = false}, kV5{.v5 = true};

}  // namespace

std::vector<GymTask> pendulum_tasks() {
  return {
      {.id = "InvertedPendulum-v4",
       .mjcf = gym_models::inverted_pendulum,
       .make = make_gym_env<InvertedPendulumEnv, kV4>,
       .frame_skip = 2,
       .observation_size = 4,
       .info = {},
       .reward_threshold = 950},
      {.id = "InvertedPendulum-v5",
       .mjcf = gym_models::inverted_pendulum,
       .make = make_gym_env<InvertedPendulumEnv, kV5>,
       .frame_skip = 2,
       .observation_size = 4,
       .info = {"reward_survive"},
       .reward_threshold = 950},
      {.id = "InvertedDoublePendulum-v4",
       .mjcf = gym_models::inverted_double_pendulum,
       .make = make_gym_env<InvertedDoublePendulumEnv, kV4>,
       .frame_skip = 5,
       .observation_size = 11,
       .info = {},
       .reward_threshold = 9100},
      {.id = "InvertedDoublePendulum-v5",
       .mjcf = gym_models::inverted_double_pendulum,
       .make = make_gym_env<InvertedDoublePendulumEnv, kV5>,
       .frame_skip = 5,
       .observation_size = 9,
       .info = {"reward_survive", "distance_penalty", "velocity_penalty"},
       .reward_threshold = 9100},
  };
}

}  // namespace troupe::env
