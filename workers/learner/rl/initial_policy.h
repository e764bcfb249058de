#pragma once

#include <memory>

#include "base/result.h"
#include "configs/job_config.h"
#include "model/policy/policy_net.h"
#include "workers/rollout/moments.h"

namespace troupe::workers {

/// The acting units as the job began: from model.init or job.seed, the same on every rank and after every restart.
/// The reference policy of kl_beta. Whole copies in PolicyNet::acting_dtype(), not shards. Reads the acting units
/// alone. Errors: those of open_initial_state.
Result<UnitViews> initial_policy(const JobConfig& job, const PolicyNet& policy);

/// Statistics of observations and returns as the job began: `none`, which has counted nothing, or with
/// model.init.mode checkpoint those that the checkpoint's policy was trained with. Statistics of returns are taken
/// over where both jobs have them. With policy.kind dreamzero `none`, too.
/// Errors: those of CheckpointReader; failed_precondition when one policy reads normalised observations and the other
/// does not.
Result<NormaliserState> initial_statistics(const JobConfig& job, NormaliserState none);

}  // namespace troupe::workers
