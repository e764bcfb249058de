#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "base/result.h"
#include "model/shard/network.h"
#include "model/wan/features.h"
#include "workers/inference/policy/policy_spec.h"

namespace troupe::workers {

/// The networks of a DreamZero folder.
struct GearWeights {
  /// Every tensor of dit_units, adapters folded in.
  ParamView dit;
  /// The frozen text encoder, image encoder and video codec.
  std::unique_ptr<FeatureEncoder> features;
};

/// Reads model.safetensors (or its shards) of a folder: the transformer, adapters folded in, and the frozen encoders.
/// Sizes that the specification leaves open are taken from the tensors and written into it. Tensors that no network has
/// are logged and left out. Errors: not_found; invalid_argument listing tensors that are missing or have another shape;
/// data_loss.
Result<GearWeights> load_gear_weights(const std::string& folder, PolicySpec& spec, at::ScalarType dtype);

}  // namespace troupe::workers
