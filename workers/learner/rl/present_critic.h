#pragma once

#include "workers/learner/rl/rollout_batch.h"

namespace troupe::workers {

/// Values of the critic whose parameters `views` are in place of those of collection: of every observation, and of
/// those at which episodes ended where the batch holds them. Only with a critic.
void value_again(RolloutBatch& batch, const PolicyNet& net, const UnitViews& views);

}  // namespace troupe::workers
