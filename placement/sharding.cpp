#include "placement/sharding.h"

#include "placement/recompute_plan.h"

namespace troupe::placement {

std::int64_t sharing_ranks(const ParallelismConfig& parallelism, std::int64_t ranks) {
  const std::int64_t degree = parallelism.data_parallel_shard_degree;
  // another degree is one of the reasons that there is no plan
  const bool is_hybrid = parallelism.mode == "hybrid" && degree >= 1 && ranks % degree == 0;
  return is_hybrid ? degree : ranks;
}

bool keeps_parameters(const ParallelismConfig& parallelism) {
  return parallelism.mode == "zero1" || parallelism.mode == "zero2";
}

JobConfig with_sharding(const JobConfig& job, const ModelCost& cost, const BatchPlan& batch,
                        const std::function<bool(const JobConfig&)>& fits) {
  JobConfig decided = job;
  const bool is_free = job.parallelism.mode == "auto";
  if (job.job.kind == JobKind::rl || (is_free && batch.data_ranks == 1)) decided.parallelism.mode = "zero3";
  if (decided.parallelism.mode != "auto") return with_recompute(decided, cost, fits);
  for (const char* mode : {"zero1", "zero2"}) {
    if (std::string(mode) == "zero1" && batch.accumulation == 1) continue;
    JobConfig tried = job;
    tried.parallelism.mode = mode;
    if (tried.activation_checkpoint.mode == "auto" && tried.activation_checkpoint.counts.empty())
      tried.activation_checkpoint.mode = "none";
    if (fits(tried)) return tried;
  }
  decided.parallelism.mode = "zero3";
  return with_recompute(decided, cost, fits);
}

}  // namespace troupe::placement
