#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/enum_names.h"

namespace troupe::workers {

/// Where a job stands. starting: actors are spawned, no group yet. recovering: a learner was lost or the group forms
/// again. running: all ranks train. draining: told to finish the current step and write a checkpoint. stopping:
/// actors end. done, failed, stopped: every actor has ended, and exit_code() is set.
enum class JobState : std::uint8_t { starting, recovering, running, draining, stopping, done, failed, stopped };
constexpr auto enum_names(JobState) {
  return std::array{"STARTING", "RECOVERING", "RUNNING", "DRAINING", "STOPPING", "DONE", "FAILED", "STOPPED"};
}

/// What the program of a job that has ended exits with: 0 done, 4 failed, 130 stopped by signal; else nothing.
constexpr std::optional<int> exit_code(JobState state) noexcept {
  return state == JobState::done      ? std::optional(0)
         : state == JobState::failed  ? std::optional(4)
         : state == JobState::stopped ? std::optional(130)
                                      : std::nullopt;
}

}  // namespace troupe::workers
