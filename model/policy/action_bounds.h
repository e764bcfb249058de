#pragma once

#include <string>

#include "base/result.h"
#include "model/policy/policy_shape.h"

namespace troupe::model {

/// Checks that a policy which scales actions into their bounds (flow, soft actor-critic) can do so: they are
/// continuous, and every dimension has finite bounds low < high. `who` names the key that asks for it ("policy.kind
/// flow"). Errors: invalid_argument.
Result<void> check_action_bounds(const PolicyShape& shape, const std::string& who);

}  // namespace troupe::model
