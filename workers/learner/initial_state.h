#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "configs/job_config.h"
#include "model/shard/engine.h"

namespace troupe::workers {

/// Where a new job's weights come from (model.init), with moments at zero and no update behind them; null with mode
/// random, whose values Engine::initialise draws. `units` are the engine's. A parameter that the source lacks and may
/// lack starts from job.seed:
///     checkpoint            a Troupe checkpoint of any world; tensors are matched by name, so a job may train adapters
///                           on weights that were trained whole (its adapters are then new), or train whole what
///                           adapters were folded into
///     components, dreamzero as WeightsState::open says
/// Errors: those of CheckpointReader, WeightSource and WeightsState; failed_precondition for a checkpoint whose tensors
/// are not the model's, naming the first.
Result<std::unique_ptr<StateSource>> open_initial_state(const JobConfig& job, const std::vector<UnitSpec>& units);

/// Whether it fits the model, by names and shapes of its tensors: no weights are read and no digests compared. Errors:
/// those of open_initial_state.
Result<void> check_initial_state(const JobConfig& job, const std::vector<UnitSpec>& units);

}  // namespace troupe::workers
