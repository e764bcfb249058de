#pragma once

#include <memory>

#include "base/result.h"
#include "configs/algorithm_config.h"
#include "configs/reward_config.h"
#include "env/env_spec.h"
#include "env/reward_rules.h"

namespace troupe::env {

/// The model that `config` names, for environments of `spec` and rewards that are discounted with `gamma` per control
/// step. Errors, each with the key: not_found with the nearest name, invalid_argument for options that the model does
/// not have, lacks or cannot use with these observations.
Result<std::shared_ptr<const RewardModel>> make_reward_model(const RewardModelConfig& config, const EnvSpec& spec,
                                                             double gamma);

/// What an algorithm discounts the rewards of an episode with, as far as its best policy goes: algorithm.gamma, and 1
/// where the members of a group are compared, by the plain sums of their rewards.
double reward_gamma(const AlgorithmConfig& algorithm);

/// Of a job that learns by `algorithm`. Errors: those of make_reward_model; invalid_argument with the key for a model
/// whose sum over the steps counts, where env.reward.model.mode is terminal.
Result<RewardRules> make_reward_rules(const RewardConfig& config, const AlgorithmConfig& algorithm,
                                      const EnvSpec& spec);

}  // namespace troupe::env
