#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace troupe::env {

/// env.reward.model.options: what a job says to a reward model, by names that the model documents.
using RewardOptions = std::map<std::string, std::string>;

/// Errors: invalid_argument with the nearest of `names`, for an option that is none of them.
Result<void> check_reward_options(const RewardOptions& options, std::initializer_list<std::string_view> names);

/// The whole number `name`, 0 or more. Errors: invalid_argument; where it is missing the error says `what` it is.
Result<std::int64_t> reward_option(const RewardOptions& options, const std::string& name, std::string_view what);

}  // namespace troupe::env
