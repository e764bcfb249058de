// Pusher: minus the distances of the object from the goal and from the arm's tips and the cost of control; it never
// ends.
#include <algorithm>
#include <cmath>
#include <utility>

#include "env/mujoco/gym_task.h"
#include "env/mujoco/models/models.h"

namespace troupe::env {
namespace {

class PusherEnv final : public GymEnv {
 public:
  struct Constants {
    float control_weight;
    double near_weight;
  };
  PusherEnv(std::shared_ptr<const GymModel> shared, MujocoData data, const Constants& constants)
      : GymEnv(std::move(shared), std::move(data)),
        c_(constants),
        tips_(mujoco_id(model(), mjOBJ_BODY, "tips_arm")),
        object_(mujoco_id(model(), mjOBJ_BODY, "object")),
        goal_(mujoco_id(model(), mjOBJ_BODY, "goal")) {}

 private:
  static constexpr std::size_t kArm = 7;  // joints; then the object's y and x, then the goal's
  static constexpr double kSpeedNoise = 5e-3, kNearest = 0.17;

  /// The object's place is drawn until it is not too near the goal's.
  void draw_state(CounterRng& rng, std::span<double> pos, std::span<double> vel) const override {
    const auto object = pos.subspan(kArm, 2), goal = pos.subspan(kArm + 2, 2);
    do {
      object[0] = rng.uniform(-0.3, 0);
      object[1] = rng.uniform(-0.2, 0.2);
    } while (std::sqrt(object[0] * object[0] + object[1] * object[1]) <= kNearest);
    std::fill(goal.begin(), goal.end(), 0.0);
    add_uniform(rng, kSpeedNoise, vel);
    std::fill(vel.end() - 4, vel.end(), 0.0);
  }
  const double* body(int id) const { return data().xpos + 3 * id; }
  static double distance(const double* a, const double* b) {
    return std::sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) + (a[2] - b[2]) * (a[2] - b[2]));
  }
  Outcome evaluate(std::span<const float> action, std::span<double> info) override {
    info[0] = -distance(body(object_), body(goal_));
    info[1] = -control_cost(c_.control_weight, action);
    info[2] = -c_.near_weight * distance(body(object_), body(tips_));
    return {info[0] + info[1] + info[2], false};
  }
  void observe_into(std::span<double> out) const override {
    auto next = std::copy_n(qpos().begin(), kArm, out.begin());
    next = std::copy_n(qvel().begin(), kArm, next);
    for (const int id : {tips_, object_, goal_}) next = std::copy_n(body(id), 3, next);
  }

  const Constants& c_;
  const int tips_, object_, goal_;
};

constexpr PusherEnv::Constants kPusher{.control_weight = 0.1f, .near_weight = 0.5};

}  // namespace

std::vector<GymTask> pusher_tasks() {
  return {{.id = "Pusher-v5",
           .mjcf = gym_models::pusher,
           .make = make_gym_env<PusherEnv, kPusher>,
           .frame_skip = 5,
           .observation_size = 23,
           .info = {"reward_dist", "reward_ctrl", "reward_near"},
           .max_steps = 100,
           .reward_threshold = 0}};
}

}  // namespace troupe::env
