#pragma once

#include <memory>
#include <string>

#include "env/arm7/arm7_cameras.h"
#include "env/arm7/arm7_model.h"
#include "env/arm7/arm7_profile.h"
#include "env/arm7/arm7_task.h"
#include "env/env_factory.h"

namespace troupe::env {

/// What all environments of one arm7 factory share; immutable.
struct Arm7Shared {
  Arm7Profile profile;
  Arm7Model arm;
};

/// One arm at its table (docs/env.md#what-there-is). info: distance (arm7_distance), grasped (0 or 1), diverged (1 in a
/// step in which the simulation broke down: the episode ends, reward 0).
class Arm7Env final : public Env {
 public:
  Arm7Env(std::shared_ptr<const Arm7Shared> shared, MujocoData data);

  const EnvSpec& spec() const noexcept override { return shared_->profile.spec; }
  Result<void> reset(std::uint64_t seed, StepSlot out) override;
  Result<void> step(std::span<const float> action, StepSlot out) override;
  Result<void> observe(StepSlot out) override;
  Result<void> render(const std::string& camera, RenderTarget out) override;
  std::uint64_t state_hash() const override;

  /// The present episode in words, for policies that are told what to do.
  std::string instruction() const { return arm7_instruction(arm().task, episode_); }
  const Arm7Episode& episode() const { return episode_; }
  /// What reward and success are computed from, of the present state.
  Arm7TaskState task_state() const;

  /// Puts arm, fingers and cube where a test wants them: qpos as in Arm7Model, everything at rest. The episode goes on.
  /// Errors: invalid_argument (another number of positions).
  Result<void> set_positions(std::span<const double> qpos);
  /// The simulator's state, for tests; valid until the next call that moves it.
  const mjData& data() const { return *data_; }
  const Arm7Model& arm() const { return shared_->arm; }

 private:
  const mjModel& model() const { return *shared_->arm.model; }
  bool is_grasped() const;
  /// Whether a pad's normal force on the cube closes the gripper on it; pressing on it from above does not.
  bool holds(int pad) const;
  void write_observation(const StepSlot& out);
  void write_vector(const Arm7Output& output, std::span<float> out) const;
  void write_images(const StepSlot& out);

  std::shared_ptr<const Arm7Shared> shared_;
  MujocoData data_;
  Arm7Painter painter_;
  Arm7Episode episode_;
  /// Since the reset.
  std::int64_t steps_ = 0;
  /// The last action closed the gripper.
  bool closes_ = false;
  /// In the step before.
  bool was_solved_ = false;
};

/// The factory of "arm7/reach-v1", "arm7/push-v1", "arm7/lift-v1" or "arm7/pick_place-v1". Compiles the model once for
/// all environments. Errors: not_found; those of make_arm7_profile.
Result<std::shared_ptr<const EnvFactory>> make_arm7_factory(std::string_view id, const EnvOptions& options);

}  // namespace troupe::env
