#pragma once

#include <string>
#include <variant>
#include <vector>

#include "configs/job_config.h"
#include "placement/plan.h"

namespace troupe::placement {

/// Why a job cannot run on a cluster: each reason says what, what it needs, the best offer, and the nearest change
/// that would do.
struct Infeasible {
  std::vector<std::string> reasons;
};

/// Decides who runs where and how much memory they take. A pure function: equal inputs give equal plans.
///
/// Uses the first `cluster.num_nodes` nodes. Roles without an entry in `cluster.component_placement` are placed by
/// default (seats.h). A rank on a device gets 6 % on top of what the engine holds; a node gives 95 % of its memory.
/// Cores of a node without devices, or of few cores, may be oversubscribed, with a warning; memory never. Several
/// learners on devices get the collective "nccl"; one, and those on cores, "gloo", or "thread" when
/// `cluster.isolation.learner` is thread.
/// Errors: Infeasible with every reason found, not only the first.
std::variant<Plan, Infeasible> make_plan(const ClusterSnapshot& cluster, const JobConfig& job, const ModelCost& cost);

/// The job with what its plan decided of it in place of auto: parallelism.mode and activation_checkpoint.
JobConfig decided_job(JobConfig job, const Plan& plan);

}  // namespace troupe::placement
