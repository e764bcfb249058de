// Ant: speed of the torso along x and a bonus while upright, minus the costs of control and, in v5, of contact.
#include <algorithm>
#include <cmath>
#include <utility>

#include "env/mujoco/gym_task.h"
#include "env/mujoco/models/models.h"

namespace troupe::env {
namespace {

class AntEnv final : public GymEnv {
 public:
  using Constants = GymVersion;
  AntEnv(std::shared_ptr<const GymModel> shared, MujocoData data, const Constants& constants)
      : GymEnv(std::move(shared), std::move(data), {.scale = 0.1, .normal_velocities = true}),
        v5_(constants.v5),
        torso_(mujoco_id(model(), mjOBJ_BODY, "torso")) {}

 private:
  static constexpr double kContactWeight = 5e-4, kLow = 0.2, kHigh = 1;
  static constexpr float kControlWeight = 0.5f;

  const double* torso() const { return data().xpos + 3 * torso_; }
  void before_step(std::span<const float>) override {
    x_ = torso()[0];
    y_ = torso()[1];
  }
  Outcome evaluate(std::span<const float> action, std::span<double> info) override {
    const double velocity = (torso()[0] - x_) / dt(), cost = control_cost(kControlWeight, action),
                 contact = v5_ ? contact_cost() : 0;
    const bool healthy = is_healthy();
    const double bonus = healthy || !v5_ ? 1 : 0;
    // v4 reports the position that the speed is taken from, v5 that of the root joint
    const double x = v5_ ? qpos()[0] : torso()[0], y = v5_ ? qpos()[1] : torso()[1];
    const double values[] = {x,     y,     std::sqrt(x * x + y * y), velocity, (torso()[1] - y_) / dt(), velocity,
                             -cost, bonus, v5_ ? -contact : velocity};
    std::copy_n(values, info.size(), info.begin());
    return {velocity + bonus - (cost + contact), !healthy};
  }
  bool is_healthy() const {
    const auto finite = [](double v) { return std::isfinite(v); };
    return std::all_of(qpos().begin(), qpos().end(), finite) && std::all_of(qvel().begin(), qvel().end(), finite) &&
           kLow <= qpos()[2] && qpos()[2] <= kHigh;
  }
  double contact_cost() const {
    double sum = 0;
    for (int i = 0; i < 6 * model().nbody; ++i) {
      const double force = std::clamp(data().cfrc_ext[i], -1.0, 1.0);
      sum += force * force;
    }
    return kContactWeight * sum;
  }
  void observe_into(std::span<double> out) const override {
    auto next = std::copy(qpos().begin() + 2, qpos().end(), out.begin());
    next = std::copy(qvel().begin(), qvel().end(), next);
    if (v5_)
      std::transform(data().cfrc_ext + 6, data().cfrc_ext + 6 * model().nbody, next,
                     [](double v) { return std::clamp(v, -1.0, 1.0); });
  }

  const bool v5_;
  const int torso_;
  double x_ = 0, y_ = 0;
};

}  // namespace

std::vector<GymTask> ant_tasks() {
  GymTask v4{.id = "Ant-v4",
             .mjcf = gym_models::ant,
             .make = make_gym_env<AntEnv, kV4>,
             .frame_skip = 5,
             .observation_size = 27,
             .info = {"x_position", "y_position", "distance_from_origin", "x_velocity", "y_velocity", "reward_forward",
                      "reward_ctrl", "reward_survive", "forward_reward"},
             .reward_threshold = 6000};
  GymTask v5 = v4;
  v5.id = "Ant-v5";
  v5.make = make_gym_env<AntEnv, kV5>;
  v5.observation_size = 105;
  v5.info.back() = "reward_contact";
  v5.wants_forces = true;
  return {v4, v5};
}

}  // namespace troupe::env
