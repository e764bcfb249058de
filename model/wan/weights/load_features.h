#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "configs/model_config.h"
#include "model/wan/features.h"
#include "model/wan/frozen_params.h"
#include "model/wan/weights/checkpoint_names.h"

namespace troupe::model {

/// The frozen encoders and the codec of a job. Each comes from its file in model.init (text_encoder, image_encoder,
/// vae); one without a file comes from model.init.path with mode dreamzero, else from the seed, which is logged as a
/// warning when the transformer itself is not random. Codec dct has no weights.
///
/// Tensors that a file stores in `dtype` (kFloat or kBFloat16) are views of its mapping, others are cast. The reference
/// runs all three in bf16 (docs/precision.md#frozen-encoders).
/// Errors: those of WeightSource::open and load_component; invalid_argument listing what a file lacks or has too much.
Result<std::unique_ptr<FeatureEncoder>> load_features(const ModelConfig& config, at::ScalarType dtype,
                                                      std::uint64_t seed);

/// One of the three networks of load_features by itself, under its names in a checkpoint; no tensor with codec dct.
Result<FrozenParams> load_frozen_component(const ModelConfig& config, Component component, at::ScalarType dtype,
                                           std::uint64_t seed);

/// Whether the files of load_features hold what the model has, by names and shapes: no tensor is read. Errors: those of
/// load_features.
Result<void> check_frozen_files(const ModelConfig& config);

/// FrozenParams::content_hash of each network of load_features, by component_name ("text_encoder", "image_encoder", and
/// "vae" unless the codec is dct), for a description of a job that is not run: tensors are read or drawn one at a
/// time and none is kept. Errors: those of load_features.
Result<std::map<std::string, std::string>> frozen_content_hashes(const ModelConfig& config, at::ScalarType dtype,
                                                                 std::uint64_t seed);

}  // namespace troupe::model
