#pragma once

#include <vector>

#include "configs/model_config.h"
#include "model/shard/network.h"

namespace troupe {

/// The DiT's parameters in the units that are gathered together: "embed" (patch, text, time and image embeddings, state
/// and action encoders), "blocks.0" ..., "head" (head, action decoder). Names and shapes as in Wan's checkpoints
/// (dreamzero-model.md 7.2), without a prefix; initial values as in 2.10. Depends on the sizes only: not on the window.
std::vector<UnitSpec> dit_units(const ModelConfig& config);

/// Elements of all parameters of a unit.
std::int64_t count_parameters(const UnitSpec& unit);

}  // namespace troupe
