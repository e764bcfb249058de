#pragma once

#include "configs/model_config.h"
#include "model/program/graph.h"
#include "model/shard/network.h"
#include "model/wan/sequence_layout.h"

namespace troupe::model {

/// DitNetwork::prologue as a graph over prologue_data (model/wan/unit_data.h), whose tensors are looked at for their
/// shapes and dtypes alone: the same layers with the same roundings. Results: x, then the conditioning in the order of
/// dit_conditioning. Linears with adapters among `params` are applied with them.
Graph record_prologue(const DitConfig& config, const SequenceLayout& layout, const ParamView& params,
                      const Batch& data);

}  // namespace troupe::model
