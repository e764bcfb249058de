#pragma once

#include <memory>

#include "base/result.h"
#include "configs/reward_config.h"
#include "env/env_spec.h"
#include "env/reward_rules.h"

namespace troupe::env {

/// The model that `config` names, for environments of `spec` and rewards that are discounted with `gamma` per control
/// step. Errors, each with the key: not_found with the nearest name, invalid_argument for options that the model does
/// not have, lacks or cannot use with these observations.
Result<std::shared_ptr<const RewardModel>> make_reward_model(const RewardModelConfig& config, const EnvSpec& spec,
                                                             double gamma);

/// Of a job whose rewards are discounted with `gamma`. Errors: those of make_reward_model.
Result<RewardRules> make_reward_rules(const RewardConfig& config, const EnvSpec& spec, double gamma);

}  // namespace troupe::env
