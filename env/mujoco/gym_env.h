#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/random.h"
#include "env/env.h"
#include "env/mujoco/mujoco_model.h"

namespace troupe::env {

/// What the environments of one Gymnasium task share: the compiled model and the spec. Immutable.
struct GymModel {
  MujocoModel model;
  EnvSpec spec;
  /// Seconds of one control step: frame skip times MuJoCo's timestep.
  double dt = 0;
  /// The task reads cfrc_ext.
  bool wants_forces = false;
};

/// What a reset adds to every position, U(-scale, scale), and to every velocity: the same, or N(0, scale).
struct ResetNoise {
  double scale = 0;
  bool normal_velocities = false;
};

/// A MuJoCo task of the Gymnasium set (docs/env.md#what-there-is): the control step, the reset and the state that all
/// of them share. The task's own rules are in the subclasses: noise of the reset, reward, end, observation. Follows
/// Gymnasium 1.4.0 to the bit where the golden traces can tell:
///     reset:  mj_resetData, initial state plus noise from CounterRng(seed, env_stream::reset, 0), mj_forward, observe
///     step:   ctrl = action, mj_step x frame skip, mj_rnePostConstraint, evaluate, observe
/// Cartesian quantities (xpos, cinert, cfrc_ext ...) are read as MuJoCo leaves them after a step, that is, of a state
/// before the last substep; they are fresh only after a reset. mj_rnePostConstraint writes nothing that a later step
/// reads, so only tasks that read its forces pay for it. Actions are not clipped here: MuJoCo clamps the control, the
/// cost of control uses the action as given. A simulation that diverges ends its episode: terminated, reward 0, info
/// "diverged" 1.
class GymEnv : public Env {
 public:
  const EnvSpec& spec() const noexcept override { return shared_->spec; }
  Result<void> reset(std::uint64_t seed, StepSlot out) override;
  Result<void> step(std::span<const float> action, StepSlot out) override;
  std::uint64_t state_hash() const override { return mujoco_state_hash(model(), *data_); }

  /// Puts the simulator into a state as after a reset: mj_resetData, the state, mj_forward. A `warmstart`
  /// (qacc_warmstart, nv numbers, or none) is what a simulation under way would have. For comparison with recorded
  /// steps. Errors: invalid_argument when the sizes are not nq, nv and nv.
  Result<void> set_state(std::span<const double> qpos, std::span<const double> qvel,
                         std::span<const double> warmstart = {});
  /// The present observation, in f64 whatever the spec's dtype; valid until the next call of any function but const
  /// ones.
  std::span<const double> observation();
  const mjModel& model() const noexcept { return *shared_->model; }
  const mjData& data() const noexcept { return *data_; }

 protected:
  GymEnv(std::shared_ptr<const GymModel> shared, MujocoData data, ResetNoise noise = {});

  /// Adds the reset's noise to qpos and qvel, which hold the model's initial state, in Gymnasium's order of draws.
  /// Tasks with draws of their own override it.
  virtual void draw_state(CounterRng& rng, std::span<double> qpos, std::span<double> qvel) const;
  /// Keeps what evaluate() compares with, before the simulator moves.
  virtual void before_step(std::span<const float> action) { (void)action; }
  struct Outcome {
    double reward = 0;
    bool terminated = false;
  };
  /// Reward and end of the step just made. `info` has the task's values, in the order of the spec's names.
  virtual Outcome evaluate(std::span<const float> action, std::span<double> info) = 0;
  /// Writes the observation of the present state.
  virtual void observe_into(std::span<double> out) const = 0;

  double dt() const noexcept { return shared_->dt; }
  std::span<const double> qpos() const noexcept { return {data_->qpos, static_cast<std::size_t>(model().nq)}; }
  std::span<const double> qvel() const noexcept { return {data_->qvel, static_cast<std::size_t>(model().nv)}; }

 private:
  void write_observation(const StepSlot& out);

  std::shared_ptr<const GymModel> shared_;
  MujocoData data_;
  const ResetNoise noise_;
  std::vector<double> observation_, info_;
};

/// value += U(-scale, scale) for each.
void add_uniform(CounterRng& rng, double scale, std::span<double> values);
/// weight * sum(a^2) in float32 and in NumPy's order of additions, as Gymnasium computes the cost of a float32 action.
double control_cost(float weight, std::span<const float> action);
/// Body, site or other object of the model by name; aborts when our own model lacks it.
int mujoco_id(const mjModel& model, mjtObj type, const char* name);

}  // namespace troupe::env
