#pragma once

#include <cstdint>
#include <string_view>

#include "base/namespaces.h"

namespace troupe::workers {

/// Where a job stands. starting: actors are spawned, no group yet. recovering: a learner was lost or the group forms
/// again. running: all ranks train. draining: told to finish the current step and write a checkpoint. stopping:
/// actors end. done, failed, stopped: every actor has ended, and exit_code() is set.
enum class JobState : std::uint8_t { starting, recovering, running, draining, stopping, done, failed, stopped };
std::string_view to_string(JobState state) noexcept;

}  // namespace troupe::workers
