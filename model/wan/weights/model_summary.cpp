#include "model/wan/weights/model_summary.h"

#include <functional>
#include <string_view>

namespace troupe::model {
namespace {

std::int64_t elements(const ParamSpec& spec) {
  std::int64_t count = 1;
  for (const auto size : spec.shape) count *= size;
  return count;
}

std::int64_t count_if(const std::vector<ParamSpec>& specs, const std::function<bool(std::string_view)>& wanted) {
  std::int64_t total = 0;
  for (const auto& spec : specs) total += wanted(spec.name) ? elements(spec) : 0;
  return total;
}

std::string first_element(std::string_view name) { return std::string(name.substr(0, name.find('.'))); }

/// Adds a tensor of block 0; `name` is without "blocks.0.".
void add_block_part(ModelSummary& out, std::string_view name, std::int64_t count) {
  const auto part = first_element(name);
  const bool known = part == "self_attn" || part == "cross_attn" || part == "ffn";
  out.dit_parts["block"] += count;
  out.dit_parts["block." + (known ? part : "other")] += count;
  if (name.find("_img.") != std::string_view::npos) out.dit_parts["block.image_path"] += count;
}

void summarise_dit(const ModelConfig& config, ModelSummary& out) {
  const std::string_view first_block = "blocks.0.";
  for (const auto& spec : component_params(config, Component::dit)) {
    const auto count = elements(spec);
    const std::string_view name = spec.name;
    out.dit += count;
    if (!is_new_in_dreamzero(config, name)) {
      out.in_wan += count;
    } else {
      (name.find("img") != std::string_view::npos ? out.new_image_path : out.new_action_state) += count;
    }
    if (name.starts_with(first_block)) add_block_part(out, name.substr(first_block.size()), count);
    if (name.starts_with("blocks.")) {
      out.blocks += count;
    } else {
      out.dit_parts[first_element(name)] += count;
    }
  }
}

}  // namespace

std::int64_t count_elements(const std::vector<ParamSpec>& specs) {
  return count_if(specs, [](std::string_view) { return true; });
}

ModelSummary summarise_model(const ModelConfig& config) {
  ModelSummary out;
  summarise_dit(config, out);
  const auto text = component_params(config, Component::text_encoder);
  out.text_encoder = count_elements(text);
  out.token_embedding = count_if(text, [](auto name) { return name == "token_embedding.weight"; });
  const auto image = component_params(config, Component::image_encoder);
  const auto last_block = "visual.transformer." + std::to_string(config.image_encoder.num_layers - 1) + ".";
  const auto visual = [](std::string_view name) { return name.starts_with("visual."); };
  out.image_encoder = count_if(image, visual);
  out.image_encoder_used = count_if(image, [&](std::string_view name) {
    return visual(name) && !name.starts_with(last_block) && !name.starts_with("visual.post_norm.") &&
           name != "visual.head";
  });
  const auto vae = component_params(config, Component::vae);
  out.vae = count_elements(vae);
  out.vae_encoder = count_if(vae, [](auto name) { return name.starts_with("encoder."); });
  out.vae_decoder = count_if(vae, [](auto name) { return name.starts_with("decoder."); });
  out.tensors = {{Component::dit, static_cast<std::int64_t>(component_params(config, Component::dit).size())},
                 {Component::text_encoder, static_cast<std::int64_t>(text.size())},
                 {Component::image_encoder, static_cast<std::int64_t>(image.size())},
                 {Component::vae, static_cast<std::int64_t>(vae.size())}};
  return out;
}

ModelConfig with_wan_codec(ModelConfig config, const std::string& type) {
  auto& codec = config.codec;
  codec.type = type;
  codec.stride_t = 4;
  const bool wan21 = type == "wan21";
  codec.channels = wan21 ? 16 : 48;
  codec.stride_hw = wan21 ? 8 : 16;
  codec.encoder_dim = wan21 ? 96 : 160;
  codec.decoder_dim = wan21 ? 96 : 256;
  return config;
}

}  // namespace troupe::model
