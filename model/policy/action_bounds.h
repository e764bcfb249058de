#pragma once

#include <string>

#include "base/result.h"
#include "model/policy/policy_shape.h"

namespace troupe {

/// That a policy which scales actions into their bounds can: they are continuous, and every dimension has finite bounds low < high.
/// `who` names the key that asks for it ("policy.kind flow"). Errors: invalid_argument.
Result<void> check_action_bounds(const PolicyShape& shape, const std::string& who);

}  // namespace troupe
