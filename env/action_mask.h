#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "env/env_spec.h"

namespace troupe::env {

/// Refuses an observation at which an agent that is `alive` (a flag each) is allowed no action. `observation` has a
/// pointer for each EnvSpec::observation field [P, ...]. Nothing to refuse without EnvReader::action_mask. Errors:
/// data_loss.
Result<void> check_action_mask(const EnvSpec& spec, std::span<std::byte* const> observation,
                               std::span<const std::uint8_t> alive);

}  // namespace troupe::env
