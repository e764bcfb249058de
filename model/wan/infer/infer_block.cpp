#include "model/wan/infer/infer_block.h"

#include <ATen/ATen.h>

#include "kernels/gated_residual.h"
#include "kernels/gelu.h"
#include "kernels/modulated_norm.h"
#include "kernels/rms_norm.h"
#include "model/wan/layers.h"

namespace troupe::model {
namespace {

at::Tensor split_heads(const DitConfig& config, const at::Tensor& x) { return x.unflatten(-1, {config.num_heads, -1}); }

/// Rows of one part in a tensor with `copies` rows per sample.
at::Tensor rows_of(const at::Tensor& x, const InferPart& part, std::int64_t copies) {
  const auto samples = part.episode->samples();
  return samples * copies == x.size(0) ? x : x.narrow(0, part.begin * copies, samples * copies);
}

at::Tensor join(std::vector<at::Tensor> parts, std::int64_t axis) {
  return parts.size() == 1 ? std::move(parts.front()) : at::cat(parts, axis);
}

/// RMS norm over the full width, then rotation by the first rows of the tables, then heads.
at::Tensor normed_heads(const DitConfig& config, const at::Tensor& x, const at::Tensor& gain, const RopeTables& rope) {
  const auto rows = x.size(1);
  return split_heads(config,
                     rms_norm_rotated(x, gain, config.eps, rope.cos.narrow(0, 0, rows), rope.sin.narrow(0, 0, rows)));
}

/// Queries [rows, Q, H, D] of the first Q new tokens over the cache and the new tokens; with state_self_only the state
/// tokens, which come last, see only each other.
at::Tensor attend_cache(const DitEpisode& episode, std::int64_t layer, const at::Tensor& q, const InferPass& pass) {
  const auto all = pass.tokens();
  const auto k = episode.cache.keys(layer, all), v = episode.cache.values(layer, all);
  const auto seeing = pass.video_tokens + pass.action_tokens;
  if (!pass.state_self_only || q.size(1) == seeing) return attend(q, k, v);
  const auto states = pass.state_tokens, from = k.size(1) - states;
  return at::cat({attend(q.narrow(1, 0, seeing), k, v),
                  attend(q.narrow(1, seeing, states), k.narrow(1, from, states), v.narrow(1, from, states))},
                 1);
}

/// Writes the new keys and values and attends from the first `queries` tokens.
at::Tensor self_attention(const DitConfig& config, const ParamView& params, const std::string& prefix,
                          std::int64_t layer, const at::Tensor& h, const InferPass& pass, std::int64_t queries,
                          bool keys_only) {
  const auto copies = layer == 0 ? 1 : pass.branches;
  const auto k = linear(params, prefix + "k", h), v = split_heads(config, linear(params, prefix + "v", h));
  const auto& k_gain = params[prefix + "norm_k.weight"];
  for (const auto& part : pass.parts) {
    part.episode->cache.write(layer, normed_heads(config, rows_of(k, part, copies), k_gain, part.rope),
                              rows_of(v, part, copies));
  }
  if (keys_only) return {};
  const auto q = linear(params, prefix + "q", queries == h.size(1) ? h : h.narrow(1, 0, queries));
  const auto& q_gain = params[prefix + "norm_q.weight"];
  std::vector<at::Tensor> attended;
  for (const auto& part : pass.parts) {
    const auto rotated = normed_heads(config, rows_of(q, part, copies), q_gain, part.rope);
    attended.push_back(attend_cache(*part.episode, layer, rotated, pass));
  }
  return linear(params, prefix + "o", join(std::move(attended), 0).flatten(2));
}

/// Text and image part added, one output projection. A sample's branches share the image's keys, so their queries run
/// as one.
at::Tensor cross_attention(const DitConfig& config, const ParamView& params, const std::string& prefix,
                           std::int64_t layer, const at::Tensor& c, const InferPass& pass) {
  const auto q =
      split_heads(config, rms_norm(params, prefix + "norm_q.weight", linear(params, prefix + "q", c), config.eps));
  const auto at_layer = static_cast<std::size_t>(layer);
  std::vector<at::Tensor> sums;
  for (const auto& part : pass.parts) {
    const auto by_branch = rows_of(q, part, pass.branches).unflatten(0, {-1, pass.branches});  // [B, branches, T, H, D]
    std::vector<at::Tensor> from_text;
    for (std::int64_t i = 0; i < pass.branches; ++i) {
      const auto& text = *part.episode->text.at(static_cast<std::size_t>(i));
      const auto& keys = text.layers.at(at_layer);
      from_text.push_back(attend(by_branch.select(1, i), keys.k, keys.v, text.mask));
    }
    const auto& image = part.episode->image.layers.at(at_layer);
    const auto from_image = attend(by_branch.flatten(1, 2), image.k, image.v);
    sums.push_back((at::stack(from_text, 1) + from_image.unflatten(1, {pass.branches, -1})).flatten(0, 1));
  }
  return linear(params, prefix + "o", join(std::move(sums), 0).flatten(2));
}

}  // namespace

at::Tensor infer_block(const DitConfig& config, const ParamView& params, std::int64_t layer, const at::Tensor& x,
                       const InferPass& pass, bool keys_only) {
  const auto prefix = "blocks." + std::to_string(layer) + ".";
  const bool last = layer + 1 == config.num_layers;
  const auto tokens = pass.tokens(), queries = last ? tokens - pass.state_tokens : tokens;
  const auto& table = params[prefix + "modulation"];
  const auto modulation = table + pass.modulation_R6d.to(table.scalar_type());
  const auto row = [&](std::int64_t index) { return modulation.select(1, index).unsqueeze(0); };
  const auto time_row = [&](std::int64_t count) {
    return pass.time_row_T.defined() ? pass.time_row_T.narrow(0, 0, count) : at::Tensor();
  };

  const auto h = modulated_layer_norm(x, 1.0 + row(1), row(0), time_row(tokens), config.eps);
  const auto attended = self_attention(config, params, prefix + "self_attn.", layer, h, pass, queries, keys_only);
  if (keys_only) return {};
  auto y = gated_residual(queries == tokens ? x : x.narrow(1, 0, queries), attended, row(2), time_row(queries));
  // from here on the prompt matters
  if (layer == 0 && pass.branches > 1) y = y.repeat_interleave(pass.branches, 0);

  const auto affine = [&](const char* name) { return params[prefix + name].view({1, 1, -1}); };
  const auto c = modulated_layer_norm(y, affine("norm3.weight"), affine("norm3.bias"), {}, config.eps);
  y = y + cross_attention(config, params, prefix + "cross_attn.", layer, c, pass);

  const auto f = modulated_layer_norm(y, 1.0 + row(4), row(3), time_row(queries), config.eps);
  const auto hidden = gelu_tanh(linear(params, prefix + "ffn.0", f));
  return gated_residual(y, linear(params, prefix + "ffn.2", hidden), row(5), time_row(queries));
}

}  // namespace troupe::model
