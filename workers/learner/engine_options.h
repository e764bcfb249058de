#pragma once

#include "configs/job_config.h"
#include "model/shard/engine.h"

namespace troupe::workers {

/// What a job says of its engine: precision.param (f32 or bf16), parallelism.param_slots and .grad_slots, recompute
/// with activation_checkpoint.mode full, training.clip_grad_norm, and AdamW's betas, eps and weight_decay, one
/// optimizer and clip norm for all unit groups. A trainer adds what its algorithm needs (rl_engine_options).
EngineOptions job_engine_options(const JobConfig& config);

}  // namespace troupe::workers
