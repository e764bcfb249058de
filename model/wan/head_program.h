#pragma once

#include <vector>

#include "configs/model_config.h"
#include "model/program/graph.h"
#include "model/shard/network.h"
#include "model/wan/sequence_layout.h"

namespace troupe::model {

/// DitNetwork::epilogue without its losses, as a graph for tensors of these shapes: the same layers with the same
/// roundings. Results: the velocities of video tokens [B, V, 4 C], in natural order (patchify), and of actions
/// [B, A, action_dim].
Graph record_head(const DitConfig& config, const SequenceLayout& layout, const ParamView& params, const Carry& carry);

/// The losses of such velocities over loss_data (model/wan/unit_data.h). Results: two scalars, of video and of actions.
Graph record_loss(const std::vector<at::Tensor>& velocities, const Batch& data);

}  // namespace troupe::model
