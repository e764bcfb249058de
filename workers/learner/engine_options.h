#pragma once

#include "configs/job_config.h"
#include "model/shard/engine.h"

namespace troupe {

/// What a job says of its engine: number formats, slots, recompute, and one optimizer and clip norm for all unit groups. A trainer
/// adds what its algorithm needs.
EngineOptions job_engine_options(const JobConfig& config);

}  // namespace troupe
