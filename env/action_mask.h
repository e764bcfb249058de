#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"
#include "env/env_spec.h"

namespace troupe::env {

/// Refuses an observation at which no action is allowed. `observation` has a pointer for each EnvSpec::observation
/// field. Nothing to refuse without EnvReader::action_mask. Errors: data_loss.
Result<void> check_action_mask(const EnvSpec& spec, std::span<std::byte* const> observation);

}  // namespace troupe::env
