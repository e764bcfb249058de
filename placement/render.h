#pragma once

#include <string>

#include "base/result.h"
#include "configs/job_config.h"
#include "placement/plan.h"

namespace troupe::placement {

/// The table `troupe plan` prints: one block per role with count, place, cores, memory and how it adds up, then batch
/// arithmetic, streams with their transport, and warnings. Ends with a newline.
std::string to_table(const Plan& plan, const JobConfig& job);

/// Canonical JSON (docs/placement.md): keys sorted, two blanks of indent, LF, integers only (cores in thousandths),
/// one trailing newline. Equal plans give equal bytes. Holds `plan_id`.
std::string to_json(const Plan& plan);

/// 16 hex digits: XXH3-64 of the canonical JSON without `revision` and `plan_id`. Equal placements have equal ids.
std::string plan_id(const Plan& plan);

/// Reads what to_json wrote. Errors: invalid_argument for text that is not a plan of format 1, whose plan_id does not
/// match, or that does not hold together: an actor on a node or device that is not there, no learner, no checkpointer,
/// a number that is not from 0 to 2^50.
Result<Plan> plan_from_json(const std::string& text);

/// What changed from `before` to `after`, one line each: `+ actor`, `- actor`, `~ actor: field old->new`, also for
/// nodes, batch, collective, stream transports and memory. Empty when nothing but the revision differs.
std::string diff(const Plan& before, const Plan& after);

}  // namespace troupe::placement
