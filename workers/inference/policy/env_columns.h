#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "env/env_spec.h"
#include "workers/inference/policy/policy.h"
#include "workers/inference/policy/policy_spec.h"

namespace troupe::workers {

/// What a policy for robots calls some columns of the state or the action that recordings of an environment have.
struct EnvColumns {
  std::string name;
  std::int64_t first = 0, width = 0;
};

/// The policy's state or action keys among an environment's columns, of which there are `width`: those that its
/// embodiment's slices name, or all of them for the one key of a whole column. Errors: invalid_argument for a key that
/// no slice names and for slices that do not fit.
Result<std::vector<EnvColumns>> state_columns(const PolicySpec& policy, std::int64_t width);
/// Every column of an action is some key's, and no one's twice: else invalid_argument, too.
Result<std::vector<EnvColumns>> action_columns(const PolicySpec& policy, const EnvSpec& env);

/// The camera of an environment that a view of the policy is, as recordings call it: "front" for the view whose column
/// is observation.images.front.
std::string camera_of(const PolicySpec& policy, const std::string& view);

/// The first `rows` rows of a policy's answer as actions of the environment, `size` numbers each.
void place_actions(const ActionChunk& chunk, std::span<const EnvColumns> keys, std::int64_t rows, std::int64_t size,
                   float* out);

}  // namespace troupe::workers
