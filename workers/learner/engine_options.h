#pragma once

#include <string>

#include "configs/job_config.h"
#include "model/shard/engine.h"

namespace troupe::workers {

/// What a decided job (a plan has decided on what is auto) says of its engine: precision.param (f32 or bf16),
/// parallelism.mode, .param_slots and .grad_slots, activation_checkpoint, training.clip_grad_norm, AdamW's betas, eps
/// and weight_decay, optimizer.moments, optimizer.lazy, Sophia's constants, ema.decay, offload, and job_update_rules,
/// one optimizer and clip norm for all unit groups. A trainer adds what its algorithm needs (rl_engine_options).
/// `run_dir`: where offload lies unless offload.folder says otherwise.
EngineOptions job_engine_options(const JobConfig& config, const std::string& run_dir);

/// Where snapshots and what is offloaded lie; empty without offload.
std::string offload_folder(const JobConfig& config, const std::string& run_dir);

/// optimizer.no_decay and optimizer.rates.
UpdateRules job_update_rules(const JobConfig& config);

}  // namespace troupe::workers
