#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/wan/weights/inspect_weights.h"

namespace troupe::model {

/// What a DreamZero checkpoint's config.json says, for people, and where the tensors say otherwise.
struct CheckpointConfigReport {
  /// Lines "name value"; contradictions also say what the shapes say.
  std::vector<std::string> facts, contradictions;
};

/// Reads the config.json beside or in a checkpoint (DreamZero's: model_type, action_horizon, action_dim,
/// action_head_cfg.config.diffusion_model_cfg; Wan's own has the sizes at its root) and compares the DiT's sizes with
/// the shapes found. Without that file, or without a DiT among the tensors, the report is empty. Errors: data_loss when
/// the file is not JSON.
Result<CheckpointConfigReport> check_checkpoint_config(const std::string& checkpoint, const WeightsReport& weights);

}  // namespace troupe::model
