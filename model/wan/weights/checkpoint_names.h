#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "configs/model_config.h"
#include "model/shard/network.h"

namespace troupe::model {

/// The four networks of a DreamZero checkpoint.
enum class Component : std::uint8_t { dit, text_encoder, image_encoder, vae };

/// Where a stored tensor belongs.
struct StoredName {
  Component component = Component::dit;
  /// As Wan's files name it, without any prefix (docs/weights.md#names); adapters end in .lora_A.weight or
  /// .lora_B.weight.
  std::string name;
};

/// Reads the name of a stored tensor: the prefixes action_head.model., action_head.text_encoder.,
/// action_head.image_encoder.model., action_head.vae.model. (or none: then `component` says what the file holds),
/// PEFT's base_model.model. and .base_layer., and adapter names with or without ".default" are taken away. Nothing for
/// a tensor of no component (CLIP's textual.*).
std::optional<StoredName> read_stored_name(std::string_view stored, Component component);

/// The full name in a DreamZero checkpoint.
std::string dreamzero_name(Component component, std::string_view name);
const char* component_name(Component component);

/// Names and shapes of a component for a configuration; the VAE's is empty with codec dct.
std::vector<ParamSpec> component_params(const ModelConfig& config, Component component);

/// What a source lacks and has too much of, sorted, in plain names. Adapters are neither.
struct KeyDifference {
  std::vector<std::string> missing, unexpected;
  /// "name: shape [..], want [..]"
  std::vector<std::string> misshapen;
};

/// Missing tensors of the DiT that a Wan checkpoint does not have and that start from random values: action and state
/// modules, for ti2v also the image path (img_emb.*, k_img, v_img, norm_k_img).
bool is_new_in_dreamzero(const ModelConfig& config, std::string_view name);

}  // namespace troupe::model
