// Humanoid: speed of the centre of mass along x and a bonus while upright, minus the costs of control and, in v5, of
// contact.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "env/mujoco/gym_task.h"
#include "env/mujoco/models/models.h"

namespace troupe::env {
namespace {

class HumanoidEnv final : public GymEnv {
 public:
  using Constants = GymVersion;
  HumanoidEnv(std::shared_ptr<const GymModel> shared, MujocoData data, const Constants& constants)
      : GymEnv(std::move(shared), std::move(data), {.scale = 1e-2}), v5_(constants.v5) {}

 private:
  static constexpr double kForwardWeight = 1.25, kBonus = 5, kControlWeight = 0.1, kContactWeight = 5e-7,
                          kContactBound = 10;
  static constexpr double kLow = 1, kHigh = 2;
  using Centre = std::array<double, 2>;

  /// x and y of the centre of mass, from the bodies' stale frames.
  Centre centre_of_mass() const {
    double x = 0, y = 0, mass = 0;
    for (int b = 0; b < model().nbody; ++b) {
      const double m = model().body_mass[b];
      x += m * data().xipos[3 * b];
      y += m * data().xipos[3 * b + 1];
      mass += m;
    }
    return {x / mass, y / mass};
  }
  void before_step(std::span<const float>) override { before_ = centre_of_mass(); }
  Outcome evaluate(std::span<const float>, std::span<double> info) override {
    const Centre centre = centre_of_mass();
    const double velocity = (centre[0] - before_[0]) / dt(), forward = kForwardWeight * velocity;
    // the control as MuJoCo was given it, in f64
    const double cost = kControlWeight * sum_of_squares(data().ctrl, model().nu);
    const double contact =
        v5_ ? std::min(kContactWeight * sum_of_squares(data().cfrc_ext, 6 * model().nbody), kContactBound) : 0;
    const bool healthy = kLow < qpos()[2] && qpos()[2] < kHigh;
    const double bonus = healthy || !v5_ ? kBonus : 0;
    const double x = v5_ ? qpos()[0] : centre[0], y = v5_ ? qpos()[1] : centre[1];
    const double values[] = {x,
                             y,
                             std::sqrt(x * x + y * y),
                             velocity,
                             (centre[1] - before_[1]) / dt(),
                             forward,
                             -cost,
                             bonus,
                             v5_ ? -contact : forward,
                             data().ten_length[0],
                             data().ten_length[1],
                             data().ten_velocity[0],
                             data().ten_velocity[1]};
    std::copy_n(values, info.size(), info.begin());
    return {forward + bonus - (cost + contact), !healthy};
  }
  static double sum_of_squares(const double* values, int count) {
    double sum = 0;
    for (int i = 0; i < count; ++i) sum += values[i] * values[i];
    return sum;
  }
  /// v4 includes the world's rows, which are zero, and the forces on the root; v5 leaves them out.
  void observe_into(std::span<double> out) const override {
    const int first_body = v5_ ? 1 : 0, first_dof = v5_ ? 6 : 0, bodies = model().nbody;
    auto next = std::copy(qpos().begin() + 2, qpos().end(), out.begin());
    next = std::copy(qvel().begin(), qvel().end(), next);
    next = std::copy(data().cinert + 10 * first_body, data().cinert + 10 * bodies, next);
    next = std::copy(data().cvel + 6 * first_body, data().cvel + 6 * bodies, next);
    next = std::copy(data().qfrc_actuator + first_dof, data().qfrc_actuator + model().nv, next);
    std::copy(data().cfrc_ext + 6 * first_body, data().cfrc_ext + 6 * bodies, next);
  }

  const bool v5_;
  Centre before_{};
};

}  // namespace

std::vector<GymTask> humanoid_tasks() {
  GymTask v4{.id = "Humanoid-v4",
             .mjcf = gym_models::humanoid,
             .make = make_gym_env<HumanoidEnv, kV4>,
             .frame_skip = 5,
             .observation_size = 376,
             .info = {"x_position", "y_position", "distance_from_origin", "x_velocity", "y_velocity", "reward_linvel",
                      "reward_quadctrl", "reward_alive", "forward_reward"},
             .wants_forces = true};
  GymTask v5 = v4;
  v5.id = "Humanoid-v5";
  v5.make = make_gym_env<HumanoidEnv, kV5>;
  v5.observation_size = 348;
  v5.info = {"x_position",      "y_position",        "distance_from_origin", "x_velocity",     "y_velocity",
             "reward_forward",  "reward_ctrl",       "reward_survive",       "reward_contact", "tendon_length.0",
             "tendon_length.1", "tendon_velocity.0", "tendon_velocity.1"};
  return {v4, v5};
}

}  // namespace troupe::env
