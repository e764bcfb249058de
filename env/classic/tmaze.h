#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "env/env.h"
#include "env/env_factory.h"

namespace troupe::env {

/// tmaze-v1: a corridor ends in a junction. A sign at its start says which way to turn there, and nothing else does:
/// a policy without a memory goes the right way in half of the episodes. Actions: 0 north, 1 east (along the
/// corridor), 2 south, 3 west. Turning at the junction ends the episode, with reward 4 and success the way that the
/// sign said; running into a wall costs 0.1, and so does the wrong turn.
///     observation "state" f32 [3]: 0 1 1 at the start where the way is north, 1 1 0 where it is south, 1 0 1 in the
///     corridor, 0 1 0 at the junction
/// Source: Bakker 2001, "Reinforcement Learning with Long Short-Term Memory" (NIPS 14).
class TMaze final : public Env {
 public:
  /// Steps from the start to the junction.
  static constexpr std::int64_t kLength = 10, kLongest = 10'000;
  /// Six steps of time limit for each of the corridor.
  static EnvSpec make_spec(std::int64_t length = kLength);
  explicit TMaze(EnvSpec spec = make_spec(), std::int64_t length = kLength) : spec_(std::move(spec)), length_(length) {}

  const EnvSpec& spec() const noexcept override { return spec_; }
  Result<void> reset(std::uint64_t seed, StepSlot out) override;
  Result<void> step(std::span<const float> action, StepSlot out) override;
  std::uint64_t state_hash() const override;

 private:
  void observe_into(const StepSlot& out) const;
  EnvSpec spec_;
  std::int64_t length_;
  /// Steps from the start, 0 to length_.
  std::int64_t place_ = 0;
  bool is_north_ = false;
};

/// As EnvRow::make takes it. Option `length`: 1 to TMaze::kLongest. Errors: those of check_env_options;
/// invalid_argument (another length).
Result<std::shared_ptr<const EnvFactory>> make_tmaze_factory(std::string_view id, const EnvOptions& options);

}  // namespace troupe::env
