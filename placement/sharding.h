#pragma once

#include <functional>

#include "configs/job_config.h"
#include "placement/plan.h"

namespace troupe::placement {

/// Learner ranks that share one copy of the parameters: all, or data_parallel_shard_degree in mode hybrid.
std::int64_t sharing_ranks(const ParallelismConfig& parallelism, std::int64_t ranks);

/// Whether every rank keeps all parameters whole: parallelism.mode zero1 and zero2 of a decided job.
bool keeps_parameters(const ParallelismConfig& parallelism);

/// The job with parallelism.mode and activation_checkpoint decided. Of auto: zero1 (where a step has several
/// micro-batches: else it moves what zero2 moves) or else zero2, if it fits with activation_checkpoint as the job has
/// it, or with nothing recomputed where that is auto; else zero3 with recompute (with_recompute). Per step of n
/// micro-batches and P parameters, zero1 moves one gather and one sum of P; zero2 one gather and n sums; zero3 about 2
/// n gathers and n sums. A rank that is alone, and a policy of reinforcement learning, which is small and kept whole,
/// have zero3. Pure.
JobConfig with_sharding(const JobConfig& job, const ModelCost& cost, const BatchPlan& batch,
                        const std::function<bool(const JobConfig&)>& fits);

}  // namespace troupe::placement
