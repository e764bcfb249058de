#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/model_config.h"
#include "model/wan/weights/component_keys.h"

namespace troupe::model {

/// What a file whose names carry no prefix holds, from names that only one network has. Nothing when no such name is
/// there.
std::optional<Component> guess_component(const std::vector<std::string>& stored);

/// Sets the sizes of one component in `config` from its stored tensors: width, layers, hidden widths, channels, the
/// kind of VAE; action and state sizes and the width of CLIP's features only where their tensors are there. Heads of
/// the DiT and of CLIP, which no shape shows, are set to the reference's widths per head (128, 80). Errors:
/// invalid_argument naming a tensor without which the sizes are unknown, or a size that no model has.
Result<void> infer_sizes(const ComponentKeys& keys, Component component, const ShapeOf& shape_of, ModelConfig& config);

}  // namespace troupe::model
