// Reacher: minus the distance of the fingertip from the target and the cost of control; it never ends.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "env/mujoco/gym_task.h"
#include "env/mujoco/models/models.h"

namespace troupe::env {
namespace {

class ReacherEnv final : public GymEnv {
 public:
  using Constants = GymVersion;
  ReacherEnv(std::shared_ptr<const GymModel> shared, MujocoData data, const Constants& constants)
      : GymEnv(std::move(shared), std::move(data)),
        v5_(constants.v5),
        tip_(mujoco_id(model(), mjOBJ_BODY, "fingertip")),
        target_(mujoco_id(model(), mjOBJ_BODY, "target")) {}

 private:
  static constexpr double kNoise = 0.1, kSpeedNoise = 5e-3, kReach = 0.2;
  static constexpr float kControlWeight = 1;

  /// All positions get noise, and then the target a place of its own inside the circle that the arm reaches.
  void draw_state(CounterRng& rng, std::span<double> pos, std::span<double> vel) const override {
    add_uniform(rng, kNoise, pos);
    do {
      pos[2] = rng.uniform(-kReach, kReach);
      pos[3] = rng.uniform(-kReach, kReach);
    } while (std::sqrt(pos[2] * pos[2] + pos[3] * pos[3]) >= kReach);
    add_uniform(rng, kSpeedNoise, vel);
    vel[2] = vel[3] = 0;
  }
  std::array<double, 3> to_target() const {
    std::array<double, 3> difference;
    for (int i = 0; i < 3; ++i)
      difference[static_cast<std::size_t>(i)] = data().xpos[3 * tip_ + i] - data().xpos[3 * target_ + i];
    return difference;
  }
  double distance() const {
    const auto d = to_target();
    return std::sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
  }
  void before_step(std::span<const float>) override { before_ = distance(); }
  /// v4 takes the distance before the step.
  Outcome evaluate(std::span<const float> action, std::span<double> info) override {
    const double near = -(v5_ ? distance() : before_), control = -control_cost(kControlWeight, action);
    info[0] = near;
    info[1] = control;
    return {near + control, false};
  }
  void observe_into(std::span<double> out) const override {
    const auto q = qpos(), v = qvel();
    const auto d = to_target();
    const double values[] = {std::cos(q[0]), std::cos(q[1]), std::sin(q[0]), std::sin(q[1]), q[2], q[3],
                             v[0],           v[1],           d[0],           d[1],           d[2]};
    std::copy_n(values, out.size(), out.begin());
  }

  const bool v5_;
  const int tip_, target_;
  double before_ = 0;
};

}  // namespace

std::vector<GymTask> reacher_tasks() {
  GymTask v4{.id = "Reacher-v4",
             .mjcf = gym_models::reacher,
             .make = make_gym_env<ReacherEnv, kV4>,
             .frame_skip = 2,
             .observation_size = 11,
             .info = {"reward_dist", "reward_ctrl"},
             .max_steps = 50,
             .reward_threshold = -3.75};
  GymTask v5 = v4;
  v5.id = "Reacher-v5";
  v5.make = make_gym_env<ReacherEnv, kV5>;
  v5.observation_size = 10;
  return {v4, v5};
}

}  // namespace troupe::env
