#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace troupe::base {

/// A named place where a failure can be scripted. `TROUPE_FAULT` or a test arms it; unarmed it costs one relaxed load.
///
/// TROUPE_FAULT is a comma list of `point[@subject]:action[:count[:skip]]`; actions are `fail` (hit() returns an
/// Error), `kill` (SIGKILL to this process), `crash` (SIGABRT), `stall` (block for 1 hour, to script a stopped process)
/// and `enospc` (Error resource_exhausted "No space left on device"). `count` limits how often it fires (default 1),
/// `skip` passes over the first hits. `subject` narrows it to one actor or file:
/// TROUPE_FAULT="decode@episode_000003:fail".
/// In a process that has said whose it is (name_fault_process), a subject that does not begin with that name counts as
/// preceded by it and a space, so that a spec can strike one incarnation:
/// TROUPE_FAULT="checkpoint.write@checkpointer/0#0:kill". Points in use are listed in docs/fault-points.md.
/// Safe from any thread. The first armed entry that fits is taken and its count goes down; each firing is logged. A
/// malformed TROUPE_FAULT ends the process with exit code 2 at the first fault point, so that no test passes unarmed.
/// `subject` of the calls is the file, actor or dataset at hand; an entry without @subject fits every one.
/// `fail` gives Errc::unavailable.
Result<void> fault_point(std::string_view point, std::string_view subject = {});

/// Says which actor's process this is, such as "learner/1#0". Call it before threads that pass fault points start.
/// The name is that of the actor's incarnation, so that a restart is not struck again.
void name_fault_process(const std::string& instance);

/// Arms faults from text in the syntax above, replacing those armed before. Errors: invalid_argument.
/// An empty `spec` disarms everything. Any thread.
Result<void> arm_faults(const std::string& spec);

}  // namespace troupe::base
