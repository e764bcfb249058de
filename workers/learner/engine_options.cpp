#include "workers/learner/engine_options.h"

#include <ATen/ATen.h>

namespace troupe::workers {

EngineOptions job_engine_options(const JobConfig& config) {
  return {.param_dtype = config.precision.param == "bf16" ? at::kBFloat16 : at::kFloat,
          .param_slots = static_cast<int>(config.parallelism.param_slots),
          .grad_slots = static_cast<int>(config.parallelism.grad_slots),
          .clip_grad_norm = config.training.clip_grad_norm,
          .recompute = config.activation_checkpoint.mode != "none",
          .adamw = {.beta1 = config.optimizer.betas.at(0),
                    .beta2 = config.optimizer.betas.at(1),
                    .eps = config.optimizer.eps,
                    .weight_decay = config.optimizer.weight_decay},
          .update_rules = job_update_rules(config)};
}

UpdateRules job_update_rules(const JobConfig& config) {
  UpdateRules rules{.no_decay = config.optimizer.no_decay};
  for (const RateConfig& rate : config.optimizer.rates) rules.rates.push_back({rate.names, rate.factor});
  return rules;
}

}  // namespace troupe::workers
