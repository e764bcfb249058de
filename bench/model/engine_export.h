#pragma once

#include <string>

#include "bench/model/engine_setup.h"

namespace troupe::bench {

/// Writes what engine_peer.py trains, FOLDER/NAME.safetensors: initial values in f32 ("weights.NAME"), the batch of all
/// ranks ("batch.KEY"), the schedule ("schedule.timesteps", "schedule.weights"); as metadata "case", a JSON object of
/// sizes and optimizer. Throws std::runtime_error when it cannot be written.
void export_case(const EngineSetup& setup, const std::string& folder);

}  // namespace troupe::bench
