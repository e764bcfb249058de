#include "env/mujoco/gym_env.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "env/episode_seed.h"

namespace troupe::env {

GymEnv::GymEnv(std::shared_ptr<const GymModel> shared, MujocoData data, ResetNoise noise)
    : shared_(std::move(shared)),
      data_(std::move(data)),
      noise_(noise),
      observation_(static_cast<std::size_t>(shared_->spec.observation[0].numel())),
      info_(shared_->spec.info.size()) {}

Result<void> GymEnv::reset(std::uint64_t seed, StepSlot out) {
  CounterRng rng(seed, env_stream::reset, 0);
  mj_resetData(&model(), data_.get());
  draw_state(rng, {data_->qpos, static_cast<std::size_t>(model().nq)},
             {data_->qvel, static_cast<std::size_t>(model().nv)});
  mj_forward(&model(), data_.get());
  write_observation(out);
  return {};
}

void GymEnv::draw_state(CounterRng& rng, std::span<double> pos, std::span<double> vel) const {
  add_uniform(rng, noise_.scale, pos);
  if (!noise_.normal_velocities) return add_uniform(rng, noise_.scale, vel);
  for (double& v : vel) v += noise_.scale * static_cast<double>(rng.normal());
}

Result<void> GymEnv::step(std::span<const float> action, StepSlot out) {
  if (action.size() != static_cast<std::size_t>(model().nu)) {
    return invalid_argument(fmt::format("{}: {} actions, wants {}", spec().id, action.size(), model().nu));
  }
  before_step(action);
  std::copy(action.begin(), action.end(), data_->ctrl);
  clear_divergence(*data_);
  for (std::int64_t i = 0; i < spec().frame_skip; ++i) mj_step(&model(), data_.get());
  if (shared_->wants_forces) mj_rnePostConstraint(&model(), data_.get());

  const std::span<double> task_info(info_.data(), info_.size() - 1);
  const bool diverged = has_diverged(*data_);
  Outcome outcome{0, true};
  if (diverged) {
    std::fill(task_info.begin(), task_info.end(), 0.0);
  } else {
    outcome = evaluate(action, task_info);
  }
  info_.back() = diverged ? 1 : 0;
  *out.reward = outcome.reward;
  *out.terminated = outcome.terminated;
  if (out.info.size() == info_.size()) std::copy(info_.begin(), info_.end(), out.info.begin());
  write_observation(out);
  return {};
}

Result<void> GymEnv::set_state(std::span<const double> qpos, std::span<const double> qvel,
                               std::span<const double> warmstart) {
  const auto nq = static_cast<std::size_t>(model().nq), nv = static_cast<std::size_t>(model().nv);
  if (qpos.size() != nq || qvel.size() != nv || (!warmstart.empty() && warmstart.size() != nv)) {
    return invalid_argument(
        fmt::format("{}: a state of {} + {} numbers with {} of warm start, wants {} + {} with {} or none", spec().id,
                    qpos.size(), qvel.size(), warmstart.size(), nq, nv, nv));
  }
  mj_resetData(&model(), data_.get());
  std::copy(qpos.begin(), qpos.end(), data_->qpos);
  std::copy(qvel.begin(), qvel.end(), data_->qvel);
  mj_forward(&model(), data_.get());
  std::copy(warmstart.begin(), warmstart.end(), data_->qacc_warmstart);
  return {};
}

std::span<const double> GymEnv::observation() {
  observe_into(observation_);
  return observation_;
}

void GymEnv::write_observation(const StepSlot& out) {
  const auto values = observation();
  if (spec().observation[0].dtype == EnvDType::f64) {
    std::copy(values.begin(), values.end(), out.field<double>(0, values.size()).begin());
  } else {
    std::transform(values.begin(), values.end(), out.field<float>(0, values.size()).begin(),
                   [](double v) { return static_cast<float>(v); });
  }
}

void add_uniform(CounterRng& rng, double scale, std::span<double> values) {
  for (double& v : values) v += rng.uniform(-scale, scale);
}

double control_cost(float weight, std::span<const float> action) {
  const std::size_t n = action.size();
  // NumPy adds short arrays one by one and longer ones in eight partial sums
  constexpr std::size_t kLanes = 8;
  float sum = 0;
  std::size_t i = 0;
  if (n >= kLanes) {
    std::array<float, kLanes> part{};
    for (; i + kLanes <= n; i += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) part[lane] += action[i + lane] * action[i + lane];
    }
    sum = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
  }
  for (; i < n; ++i) sum += action[i] * action[i];
  return static_cast<double>(weight * sum);
}

int mujoco_id(const mjModel& model, mjtObj type, const char* name) {
  const int id = mj_name2id(&model, type, name);
  TROUPE_CHECK(id >= 0, fmt::format("the model has no '{}'", name));
  return id;
}

}  // namespace troupe::env
