#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "workers/inference/policy/policy.h"
#include "workers/inference/policy/policy_options.h"

namespace troupe::workers {

/// Loads a policy from a Troupe checkpoint of DreamZero (.../checkpoints/step_NNNNNN, with or without adapters, of
/// supervised fine-tuning, or of policy.kind dreamzero, which acts as it learned unless the options say otherwise) or
/// from a DreamZero folder in GEAR's layout (config.json, model*.safetensors, experiment_cfg/metadata.json;
/// norm_stats.json where OpenPI brings one). Reads specification, weights and tokenizer, in options.dtype; memory: all
/// networks in that type.
/// Errors: not_found, invalid_argument, data_loss, each naming the file and what to do.
Result<std::unique_ptr<Policy>> load_policy(const std::string& checkpoint, const PolicyOptions& options);

}  // namespace troupe::workers
