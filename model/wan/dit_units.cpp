#include "model/wan/dit_units.h"

#include "model/wan/layers.h"
#include "model/wan/numbers.h"

namespace troupe::model {
namespace {

UnitSpec embed_unit(const ModelConfig& config) {
  const auto& dit = config.dit;
  const std::int64_t d = dit.dim, clip = config.image_encoder.dim, patch = dit.in_dim * 4;
  UnitSpec unit{"embed", "embed", {}};
  auto& list = unit.params;
  list.push_back({"patch_embedding.weight", {d, dit.in_dim, 1, 2, 2}, {Init::Kind::uniform, xavier_bound(patch, d)}});
  // the convolution's own default, which the reference never overwrites
  list.push_back({"patch_embedding.bias", {d}, {Init::Kind::uniform, inverse_root(patch)}});
  add_linear(list, "text_embedding.0", config.text_encoder.dim, d, 0.02);
  add_linear(list, "text_embedding.2", d, d, 0.02);
  add_linear(list, "time_embedding.0", dit.freq_dim, d, 0.02);
  add_linear(list, "time_embedding.2", d, d, 0.02);
  add_linear(list, "time_projection.1", d, 6 * d);
  add_layer_norm(list, "img_emb.proj.0", clip);
  add_linear(list, "img_emb.proj.1", clip, clip);
  add_linear(list, "img_emb.proj.3", clip, d);
  add_layer_norm(list, "img_emb.proj.4", d);
  add_category_linear(list, "state_encoder.layer1", dit.max_state_dim, dit.encoder_hidden);
  add_category_linear(list, "state_encoder.layer2", dit.encoder_hidden, d);
  add_category_linear(list, "action_encoder.W1", dit.action_dim, d);
  add_category_linear(list, "action_encoder.W2", 2 * d, d);
  add_category_linear(list, "action_encoder.W3", d, d);
  return unit;
}

UnitSpec block_unit(const ModelConfig& config, std::int64_t index) {
  const std::int64_t d = config.dit.dim, ffn = config.dit.ffn_dim;
  const auto name = "blocks." + std::to_string(index);
  const auto prefix = name + ".";
  UnitSpec unit{name, "block", {}};
  auto& list = unit.params;
  // a linear with adapters is a product of its own, and frozen bases on disk have this order
  const bool joined = config.train_architecture != "lora";
  const auto add_together = [&](const std::string& of, const std::vector<std::string>& parts) {
    if (joined) return add_joined_linears(list, of, parts, d, d);
    for (const auto& part : parts) add_linear(list, of + part, d, d);
  };
  list.push_back({prefix + "modulation", {1, 6, d}, {Init::Kind::normal, inverse_root(d)}});
  add_together(prefix + "self_attn.", {"q", "k", "v"});
  add_linear(list, prefix + "self_attn.o", d, d);
  for (const char* part : {"norm_q", "norm_k"}) add_gain(list, prefix + "self_attn." + part + ".weight", d);
  add_layer_norm(list, prefix + "norm3", d);
  add_linear(list, prefix + "cross_attn.q", d, d);
  add_together(prefix + "cross_attn.", {"k", "v"});
  add_linear(list, prefix + "cross_attn.o", d, d);
  add_together(prefix + "cross_attn.", {"k_img", "v_img"});
  for (const char* part : {"norm_q", "norm_k", "norm_k_img"}) {
    add_gain(list, prefix + "cross_attn." + part + ".weight", d);
  }
  add_linear(list, prefix + "ffn.0", d, ffn);
  add_linear(list, prefix + "ffn.2", ffn, d);
  return unit;
}

UnitSpec head_unit(const ModelConfig& config) {
  const auto& dit = config.dit;
  UnitSpec unit{"head", "head", {}};
  auto& list = unit.params;
  // zero, so that an untrained model predicts zero velocity
  list.push_back({"head.head.weight", {4 * dit.out_dim, dit.dim}, {Init::Kind::zeros, 0}});
  list.push_back({"head.head.bias", {4 * dit.out_dim}, {Init::Kind::zeros, 0}});
  list.push_back({"head.modulation", {1, 2, dit.dim}, {Init::Kind::normal, inverse_root(dit.dim)}});
  add_category_linear(list, "action_decoder.layer1", dit.dim, dit.encoder_hidden);
  add_category_linear(list, "action_decoder.layer2", dit.encoder_hidden, dit.action_dim);
  return unit;
}

}  // namespace

std::vector<UnitSpec> dit_units(const ModelConfig& config) {
  std::vector<UnitSpec> units;
  units.push_back(embed_unit(config));
  for (std::int64_t i = 0; i < config.dit.num_layers; ++i) units.push_back(block_unit(config, i));
  units.push_back(head_unit(config));
  return units;
}

std::int64_t count_parameters(const UnitSpec& unit) {
  std::int64_t total = 0;
  for (const auto& spec : unit.params) {
    std::int64_t count = 1;
    for (const auto size : spec.shape) count *= size;
    total += count;
  }
  return total;
}

}  // namespace troupe::model
