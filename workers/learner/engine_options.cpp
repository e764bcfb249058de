#include "workers/learner/engine_options.h"

#include <ATen/ATen.h>

#include <limits>

#include "model/shard/precision.h"
#include "placement/memory_model.h"
#include "placement/recompute_plan.h"
#include "placement/sharding.h"

namespace troupe::workers {

namespace {

/// As many as the engine has units.
constexpr int kSlotForEveryUnit = std::numeric_limits<int>::max();

/// Of the prologue, the blocks and the head.
std::vector<RecomputeLevel> recompute_levels(const JobConfig& config) {
  const BlockCounts counts = block_counts(config.activation_checkpoint, config.model.dit.num_layers);
  const bool keeps_all = counts.front() == config.model.dit.num_layers;
  std::vector<RecomputeLevel> levels = {keeps_all ? RecomputeLevel::none : RecomputeLevel::full};
  for (const std::size_t level : block_levels(counts)) levels.push_back(static_cast<RecomputeLevel>(level));
  return levels;
}

std::optional<SophiaOptions> sophia_options(const OptimizerConfig& optimizer) {
  if (optimizer.name != "sophia") return std::nullopt;
  return SophiaOptions{.beta1 = optimizer.sophia.betas.at(0),
                       .beta2 = optimizer.sophia.betas.at(1),
                       .rho = optimizer.sophia.rho,
                       .weight_decay = optimizer.weight_decay};
}

}  // namespace

std::string offload_folder(const JobConfig& config, const std::string& run_dir) {
  if (!config.offload.states && !config.offload.activations) return "";
  return config.offload.folder.empty() ? run_dir + "/offload" : config.offload.folder;
}

EngineOptions job_engine_options(const JobConfig& config, const std::string& run_dir) {
  return {.param_dtype = dtype_of_precision(config.precision.param),
          .param_slots = keeps_parameters(config.parallelism) ? kSlotForEveryUnit
                                                              : static_cast<int>(config.parallelism.param_slots),
          .grad_slots = static_cast<int>(config.parallelism.grad_slots),
          .whole_gradients = config.parallelism.mode == "zero1",
          .reduce_scatters = config.parallelism.reduce == "nccl",
          .offload = {.states = config.offload.states,
                      .stash_slots = config.offload.activations ? kStashSlots : 0,
                      .folder = offload_folder(config, run_dir)},
          .lazy_optimizer = config.optimizer.lazy,
          .sharing_ranks =
              config.parallelism.mode == "hybrid" ? static_cast<int>(config.parallelism.data_parallel_shard_degree) : 0,
          .clip_grad_norm = config.training.clip_grad_norm,
          .recompute = recompute_levels(config),
          .adamw = {.beta1 = config.optimizer.betas.at(0),
                    .beta2 = config.optimizer.betas.at(1),
                    .eps = config.optimizer.eps,
                    .weight_decay = config.optimizer.weight_decay},
          .sophia = sophia_options(config.optimizer),
          .moment_dtype = dtype_of_precision(config.optimizer.moments),
          .ema_decay = config.ema.decay,
          .update_rules = job_update_rules(config),
          .graphs = config.training.cuda_graphs};
}

UpdateRules job_update_rules(const JobConfig& config) {
  UpdateRules rules{.no_decay = config.optimizer.no_decay};
  for (const RateConfig& rate : config.optimizer.rates) rules.rates.push_back({rate.names, rate.factor});
  return rules;
}

}  // namespace troupe::workers
