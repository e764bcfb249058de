#pragma once

#include <string>

#include "model/program/graph.h"
#include "model/shard/network.h"
#include "model/wan/dit_parts.h"

namespace troupe::model {

/// transformer_block (model/wan/dit_parts.h) as a graph: the same operations with the same roundings, for tensors of
/// the shapes and dtype of these. Parameters are named without `prefix`; those with adapters among `params` are applied
/// with them (model/wan/lora.h).
Graph record_block(const BlockPlan& plan, const ParamView& params, const std::string& prefix, const Carry& carry);

}  // namespace troupe::model
