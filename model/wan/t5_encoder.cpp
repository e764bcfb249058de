#include "model/wan/t5_encoder.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "model/wan/layers.h"
#include "model/wan/numbers.h"

namespace troupe::model {
namespace {

constexpr double kRmsNormEps = 1e-6;
constexpr double kMaxDistance = 128;

/// Bias [1, H, L, L] of one block: a learned number for each head and bucket of key - query.
at::Tensor position_bias(const TextEncoderConfig& config, const ParamView& params, const std::string& prefix,
                         std::int64_t length) {
  const auto& table = params[prefix + "pos_embedding.embedding.weight"];
  const auto place = at::arange(length, table.options().dtype(at::kLong));
  const auto buckets = t5_position_buckets(place.unsqueeze(0) - place.unsqueeze(1), config.num_buckets);
  return at::embedding(table, buckets).permute({2, 0, 1}).unsqueeze(0);
}

at::Tensor attention(const TextEncoderConfig& config, const ParamView& params, const std::string& prefix,
                     const at::Tensor& x, const at::Tensor& bias) {
  const auto heads = [&](const char* name) {
    return linear(params, prefix + name, x).unflatten(-1, {config.num_heads, -1}).transpose(1, 2);
  };
  const auto q = heads("q"), k = heads("k"), v = heads("v");
  const auto logits = at::matmul(q, k.transpose(2, 3)) + bias;
  const auto weights = at::softmax(logits, -1, accumulate_type(logits.scalar_type())).to(v.scalar_type());
  return linear(params, prefix + "o", at::matmul(weights, v).transpose(1, 2).flatten(2));
}

at::Tensor feed_forward(const ParamView& params, const std::string& prefix, const at::Tensor& x) {
  const auto gate = t5_gelu(linear(params, prefix + "gate.0", x));
  return linear(params, prefix + "fc2", linear(params, prefix + "fc1", x) * gate);
}

}  // namespace

std::vector<ParamSpec> t5_params(const TextEncoderConfig& config) {
  const auto d = config.dim, attn = config.dim_attn, ff = config.dim_ff, heads = config.num_heads;
  std::vector<ParamSpec> list;
  const auto add = [&list](const std::string& name, std::vector<std::int64_t> shape, double std) {
    list.push_back({name + ".weight", std::move(shape), {Init::Kind::normal, std}});
  };
  add("token_embedding", {config.vocab, d}, 1.0);
  for (std::int64_t i = 0; i < config.num_layers; ++i) {
    const auto prefix = "blocks." + std::to_string(i) + ".";
    add_gain(list, prefix + "norm1.weight", d);
    add(prefix + "attn.q", {attn, d}, inverse_root(d * (attn / heads)));
    add(prefix + "attn.k", {attn, d}, inverse_root(d));
    add(prefix + "attn.v", {attn, d}, inverse_root(d));
    add(prefix + "attn.o", {d, attn}, inverse_root(attn));
    add_gain(list, prefix + "norm2.weight", d);
    add(prefix + "ffn.gate.0", {ff, d}, inverse_root(d));
    add(prefix + "ffn.fc1", {ff, d}, inverse_root(d));
    add(prefix + "ffn.fc2", {d, ff}, inverse_root(ff));
    add(prefix + "pos_embedding.embedding", {config.num_buckets, heads}, inverse_root(2 * config.num_buckets * heads));
  }
  add_gain(list, "norm.weight", d);
  return list;
}

at::Tensor t5_position_buckets(const at::Tensor& relative, std::int64_t num_buckets) {
  const auto half = num_buckets / 2, exact = half / 2;
  const auto distance = relative.abs();
  const auto scaled = at::log(distance.clamp_min(1).to(at::kFloat) / static_cast<double>(exact)) /
                      std::log(kMaxDistance / static_cast<double>(exact)) * static_cast<double>(half - exact);
  const auto far = (exact + scaled.to(at::kLong)).clamp_max(half - 1);
  return (relative > 0).to(at::kLong) * half + at::where(distance < exact, distance, far);
}

at::Tensor t5_gelu(const at::Tensor& x) {
  if (x.scalar_type() != at::kBFloat16) return at::gelu(x, "tanh");
  // every operation rounds to bf16, as the reference's written-out form does; a fused GELU rounds once
  const double root = std::sqrt(2.0 / std::numbers::pi);
  return 0.5 * x * (1.0 + at::tanh(root * (x + 0.044715 * at::pow(x, 3.0))));
}

at::Tensor t5_encode(const TextEncoderConfig& config, const ParamView& params, const at::Tensor& ids,
                     const at::Tensor& mask) {
  TORCH_CHECK(ids.dim() == 2 && ids.sizes() == mask.sizes(), "t5_encode: ids ", ids.sizes(), ", mask ", mask.sizes());
  const auto& embedding = params["token_embedding.weight"];
  TORCH_CHECK(
      ids.numel() == 0 || (ids.min().item<std::int64_t>() >= 0 && ids.max().item<std::int64_t>() < embedding.size(0)),
      "t5_encode: a token id lies outside the vocabulary of ", embedding.size(0), " (model.text_encoder.vocab)");
  auto x = at::embedding(embedding, ids);
  const auto hidden_keys = mask.eq(0).view({ids.size(0), 1, 1, ids.size(1)});
  // the most negative finite number, so that a row without any real key stays finite
  const double lowest = x.scalar_type() == at::kBFloat16
                            ? static_cast<double>(std::numeric_limits<at::BFloat16>::lowest())
                            : std::numeric_limits<float>::lowest();
  for (std::int64_t i = 0; i < config.num_layers; ++i) {
    const auto prefix = "blocks." + std::to_string(i) + ".";
    // the mask replaces the bias, it is not added to it
    const auto bias = position_bias(config, params, prefix, ids.size(1)).masked_fill(hidden_keys, lowest);
    x = x +
        attention(config, params, prefix + "attn.", rms_norm(params, prefix + "norm1.weight", x, kRmsNormEps), bias);
    x = x + feed_forward(params, prefix + "ffn.", rms_norm(params, prefix + "norm2.weight", x, kRmsNormEps));
  }
  return rms_norm(params, "norm.weight", x, kRmsNormEps);
}

at::Tensor zero_tail(const at::Tensor& hidden, const at::Tensor& mask, TailMode mode) {
  auto length = mask.ne(0).to(at::kLong).sum(1, true);
  if (mode == TailMode::batch_min) length = length.min().expand_as(length);
  const auto place = at::arange(hidden.size(1), length.options()).unsqueeze(0);
  return hidden * (place < length).unsqueeze(2).to(hidden.scalar_type());
}

}  // namespace troupe::model
