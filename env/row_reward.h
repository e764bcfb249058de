#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"
#include "env/reward_rules.h"

namespace troupe::env {

/// The rewards of one row of a block by its RewardRules, step by step: remembers what they compare with. Used by one
/// thread at a time; the rules outlive it.
class RowReward {
 public:
  /// `field_bytes`: of each field of an observation.
  RowReward(const RewardRules& rules, std::span<const std::int64_t> field_bytes);

  /// The model is shown the observation after every action, also inside a chunk.
  bool wants_every_observation() const { return rules_.model && rules_.model->reads_observations(); }
  /// An episode begins; `observation` is its first.
  void begin(std::span<std::byte* const> observation);
  /// The reward that is trained on for a step whose own is `own`; `step.observation` is filled in here. Errors: those
  /// of the model; data_loss for a number that is not finite.
  Result<double> of(double own, RewardStep step);

 private:
  void keep(std::span<std::byte* const> observation);

  const RewardRules& rules_;
  const std::vector<std::int64_t> field_bytes_;
  double own_before_ = 0;
  /// The observation before the next action, where the model reads it, and where its fields begin.
  std::vector<std::byte> kept_;
  std::vector<const std::byte*> fields_;
};

}  // namespace troupe::env
