#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/enum_names.h"

namespace troupe::workers {

/// Where a job stands. starting: actors are spawned, no group yet. recovering: a learner was lost or the group forms
/// again. running: all ranks train. draining: told to finish the current step and write a checkpoint. stopping:
/// actors end. done, failed, stopped, preempted: every actor has ended, and exit_code() is set.
enum class JobState : std::uint8_t {
  starting,
  recovering,
  running,
  draining,
  stopping,
  done,
  failed,
  stopped,
  preempted
};
constexpr auto enum_names(JobState) {
  return std::array{"STARTING", "RECOVERING", "RUNNING", "DRAINING", "STOPPING",
                    "DONE",     "FAILED",     "STOPPED", "PREEMPTED"};
}

/// What the program of a job that has ended exits with: 0 done, 4 failed, 130 stopped by a person, 75 by its scheduler,
/// which may start it again (sysexits.h: EX_TEMPFAIL); else nothing.
constexpr std::optional<int> exit_code(JobState state) noexcept {
  return state == JobState::done        ? std::optional(0)
         : state == JobState::failed    ? std::optional(4)
         : state == JobState::stopped   ? std::optional(130)
         : state == JobState::preempted ? std::optional(75)
                                        : std::nullopt;
}

/// Somebody asks the job to stop before its end. The first one makes a checkpoint of the last finished step; a second
/// one stops at once, as the work of a person.
struct Interrupt {
  /// "SIGINT", "troupe status --stop".
  std::string why;
  /// By a scheduler (SIGTERM, SIGUSR1), not a person (SIGINT, SIGHUP, the command line).
  bool is_preemption = false;
};

}  // namespace troupe::workers
