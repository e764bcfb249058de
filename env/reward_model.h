#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"

namespace troupe::env {

/// One control step as a reward model sees it. Views are valid during the call.
struct RewardStep {
  /// Each field of EnvSpec::observation before the action; empty unless RewardModel::reads_observations().
  std::span<const std::byte* const> observation;
  /// As the environment was given it, clipped.
  std::span<const float> action;
  /// Each field after the action; where it ended the episode, the final observation. Empty as above.
  std::span<std::byte* const> next_observation;
  /// The ends of docs/env.md#one-step-of-a-block; never both.
  bool is_terminated = false;
  bool is_truncated = false;
  /// False where the environment does not know success.
  bool is_success = false;
};

/// A reward as a function of observation, action, next observation and end. Immutable; called from several threads at
/// once, for rows of every environment. To add one: its class in env/reward/ and its row of the table in
/// reward_registry.cpp.
class RewardModel {
 public:
  virtual ~RewardModel() = default;
  /// Observations are wanted: the environment is asked for one after every action, which is copied for the next step.
  virtual bool reads_observations() const noexcept { return false; }
  /// An error, or a number that is not finite, loses the row (docs/env.md#one-step-of-a-block).
  virtual Result<double> reward(const RewardStep& step) const = 0;
};

}  // namespace troupe::env
