#include "env/mujoco/gym_factory.h"

#include <fmt/format.h>

#include <utility>

#include "env/mujoco/gym_task.h"

namespace troupe::env {
namespace {

Result<EnvDType> observation_dtype(std::string_view id, const EnvOptions& options) {
  TROUPE_TRY(check_env_options(id, options, {}, {"obs_dtype"}));
  const auto found = options.options.find("obs_dtype");
  if (found == options.options.end() || found->second == "f32") return EnvDType::f32;
  if (found->second == "f64") return EnvDType::f64;
  return invalid_argument(
      fmt::format("{}: option obs_dtype is '{}', wants f32 or f64 (env.options)", id, found->second));
}

ActionSpace motors_of(const mjModel& model) {
  ActionSpace action;
  action.size = model.nu;
  for (int i = 0; i < model.nu; ++i) {
    action.low.push_back(static_cast<float>(model.actuator_ctrlrange[2 * i]));
    action.high.push_back(static_cast<float>(model.actuator_ctrlrange[2 * i + 1]));
  }
  return action;
}

class GymFactory final : public EnvFactory {
 public:
  GymFactory(const GymTask& task, std::shared_ptr<const GymModel> shared) : task_(task), shared_(std::move(shared)) {}

  const EnvSpec& spec() const noexcept override { return shared_->spec; }
  Result<std::unique_ptr<Env>> make() const override {
    TROUPE_ASSIGN(auto data, make_mujoco_data(*shared_->model));
    return std::unique_ptr<Env>(task_.make(shared_, std::move(data)));
  }

 private:
  const GymTask& task_;
  std::shared_ptr<const GymModel> shared_;
};

Result<std::shared_ptr<const EnvFactory>> make_factory(const GymTask& task, const EnvOptions& options) {
  TROUPE_ASSIGN(const EnvDType dtype, observation_dtype(task.id, options));
  auto shared = std::make_shared<GymModel>();
  TROUPE_ASSIGN(shared->model, compile_mjcf(task.mjcf()));
  shared->dt = static_cast<double>(task.frame_skip) * shared->model->opt.timestep;
  shared->wants_forces = task.wants_forces;
  EnvSpec& spec = shared->spec;
  spec.id = task.id;
  spec.observation = {EnvField{.name = "state", .shape = {task.observation_size}, .unit = "", .dtype = dtype}};
  spec.action = motors_of(*shared->model);
  spec.info = task.info;
  spec.info.emplace_back("diverged");
  spec.max_steps = options.max_steps > 0 ? options.max_steps : task.max_steps;
  spec.control_hz = 1 / shared->dt;
  spec.frame_skip = task.frame_skip;
  spec.reward_threshold = task.reward_threshold;
  return std::shared_ptr<const EnvFactory>(std::make_shared<GymFactory>(task, std::move(shared)));
}

std::vector<GymTask> all_tasks() {
  std::vector<GymTask> all;
  for (auto* tasks :
       {runner_tasks, walker_tasks, ant_tasks, humanoid_tasks, reacher_tasks, pusher_tasks, pendulum_tasks}) {
    for (GymTask& task : tasks()) all.push_back(std::move(task));
  }
  return all;
}

}  // namespace

std::span<const GymTask> gym_tasks() {
  static const std::vector<GymTask> tasks = all_tasks();
  return tasks;
}

Result<std::shared_ptr<const EnvFactory>> make_gym_factory(std::string_view id, const EnvOptions& options) {
  for (const GymTask& task : gym_tasks()) {
    if (task.id == id) return make_factory(task, options);
  }
  return Error{Errc::not_found, fmt::format("'{}' is no MuJoCo task of the Gymnasium set", id)};
}

}  // namespace troupe::env
