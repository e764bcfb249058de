#pragma once

#include <memory>

#include "base/result.h"
#include "configs/job_config.h"
#include "model/policy/policy_net.h"

namespace troupe {

/// The acting units as the job began: from model.init or job.seed, the same on every rank and after every restart. The reference
/// policy of kl_beta. Errors: those of open_initial_state.
Result<UnitViews> initial_policy(const JobConfig& job, const PolicyNet& policy, std::shared_ptr<const Network> network);

}  // namespace troupe
