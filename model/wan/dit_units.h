#pragma once

#include <vector>

#include "configs/model_config.h"
#include "model/shard/network.h"

namespace troupe::model {

/// The DiT's parameters in the units that are gathered together: "embed" (patch, text, time and image embeddings, state
/// and action encoders), "blocks.0" ..., "head" (head, action decoder). Names and shapes as in Wan's checkpoints,
/// without a prefix. Depends on the sizes only: not on the window.
///
/// Initial values of what no checkpoint gives: linears Xavier-uniform with zero bias; text and time embeddings
/// N(0, 0.02^2); the patch embedding's bias uniform within 1/sqrt(4 Cin); the head's linear zero; modulations
/// N(0, 1)/sqrt(d); gains one; state and action encoders W = 0.02 N(0, 1), b = 0.
std::vector<UnitSpec> dit_units(const ModelConfig& config);

/// Elements of all parameters of a unit.
std::int64_t count_parameters(const UnitSpec& unit);

}  // namespace troupe::model
