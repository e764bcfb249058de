// Hopper and Walker2d: speed along x and a bonus while upright, minus the cost of control.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "env/mujoco/gym_task.h"
#include "env/mujoco/models/models.h"

namespace troupe::env {
namespace {

class WalkerEnv final : public GymEnv {
 public:
  struct Constants {
    double z_low, z_high, angle, state_bound;
    bool pays_when_fallen;  ///< v4 pays the bonus on the step that ends the episode too
  };
  WalkerEnv(std::shared_ptr<const GymModel> shared, MujocoData data, const Constants& constants)
      : GymEnv(std::move(shared), std::move(data), {.scale = 5e-3}), c_(constants) {}

 private:
  static constexpr double kSpeedBound = 10;
  static constexpr float kControlWeight = 1e-3f;

  void before_step(std::span<const float>) override { x_ = qpos()[0]; }
  Outcome evaluate(std::span<const float> action, std::span<double> info) override {
    const double x = qpos()[0], z = qpos()[1];
    const double velocity = (x - x_) / dt(), cost = control_cost(kControlWeight, action);
    const bool healthy = is_healthy();
    const double bonus = healthy || c_.pays_when_fallen ? 1 : 0;
    const double values[] = {x, velocity, z - model().qpos0[1], velocity, -cost, bonus};
    std::copy_n(values, info.size(), info.begin());
    return {velocity + bonus - cost, !healthy};
  }
  bool is_healthy() const {
    const auto bounded = [this](double v) { return -c_.state_bound < v && v < c_.state_bound; };
    return c_.z_low < qpos()[1] && qpos()[1] < c_.z_high && std::abs(qpos()[2]) < c_.angle &&
           std::all_of(qpos().begin() + 2, qpos().end(), bounded) && std::all_of(qvel().begin(), qvel().end(), bounded);
  }
  void observe_into(std::span<double> out) const override {
    const auto next = std::copy(qpos().begin() + 1, qpos().end(), out.begin());
    std::transform(qvel().begin(), qvel().end(), next,
                   [](double v) { return std::clamp(v, -kSpeedBound, kSpeedBound); });
  }

  const Constants& c_;
  double x_ = 0;
};

constexpr double kNone = std::numeric_limits<double>::infinity();
constexpr WalkerEnv::Constants kHopper4{
    .z_low = 0.7, .z_high = kNone, .angle = 0.2, .state_bound = 100, .pays_when_fallen = true};
constexpr WalkerEnv::Constants kHopper5{
    .z_low = 0.7, .z_high = kNone, .angle = 0.2, .state_bound = 100, .pays_when_fallen = false};
constexpr WalkerEnv::Constants kWalker4{
    .z_low = 0.8, .z_high = 2, .angle = 1, .state_bound = kNone, .pays_when_fallen = true};
constexpr WalkerEnv::Constants kWalker5{
    .z_low = 0.8, .z_high = 2, .angle = 1, .state_bound = kNone, .pays_when_fallen = false};

}  // namespace

std::vector<GymTask> walker_tasks() {
  const std::vector<std::string> info4 = {"x_position", "x_velocity"};
  const std::vector<std::string> info5 = {"x_position",     "x_velocity",  "z_distance_from_origin",
                                          "reward_forward", "reward_ctrl", "reward_survive"};
  const GymTask hopper{.id = "Hopper-v4",
                       .mjcf = gym_models::hopper,
                       .make = make_gym_env<WalkerEnv, kHopper4>,
                       .frame_skip = 4,
                       .observation_size = 11,
                       .info = info4,
                       .reward_threshold = 3800};
  GymTask hopper5 = hopper;
  hopper5.id = "Hopper-v5";
  hopper5.make = make_gym_env<WalkerEnv, kHopper5>;
  hopper5.info = info5;
  const GymTask walker{.id = "Walker2d-v4",
                       .mjcf = [] { return gym_models::walker2d(0.9); },
                       .make = make_gym_env<WalkerEnv, kWalker4>,
                       .frame_skip = 4,
                       .observation_size = 17,
                       .info = info4};
  GymTask walker5 = walker;
  walker5.id = "Walker2d-v5";
  walker5.mjcf = [] { return gym_models::walker2d(1.9); };
  walker5.make = make_gym_env<WalkerEnv, kWalker5>;
  walker5.info = info5;
  return {hopper, hopper5, walker, walker5};
}

}  // namespace troupe::env
