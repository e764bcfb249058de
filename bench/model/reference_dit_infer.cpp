// The policy's half of ReferenceDit: new tokens against a cache, context projected in every layer of every step.
#include <ATen/ATen.h>

#include "bench/model/reference_dit.h"

namespace troupe::bench {
at::Tensor ReferenceDit::infer_block(std::int64_t layer, const at::Tensor& x0, const at::Tensor& e0,
                                     const at::Tensor& context, const at::Tensor& freqs, Cache& cache,
                                     bool keep) const {
  const auto prefix = "blocks." + std::to_string(layer) + ".", attn = prefix + "self_attn.";
  const auto eps = case_.config.dit.eps;
  const auto dtype = x0.scalar_type();
  const auto e = (w(prefix + "modulation").unsqueeze(1) + e0).chunk(6, 2);
  const auto at_token = [&](std::size_t i) { return e[i].squeeze(2); };
  const auto heads = [&](const at::Tensor& t) { return t.unflatten(2, {case_.config.dit.num_heads, -1}); };

  const auto h = layer_norm(x0, eps).to(dtype) * (1 + at_token(1)) + at_token(0);
  const auto q = rotate_pairs(heads(rms(attn + "norm_q.weight", linear(attn + "q", h))), freqs);
  const auto new_k = rotate_pairs(heads(rms(attn + "norm_k.weight", linear(attn + "k", h))), freqs);
  const auto new_v = heads(linear(attn + "v", h));
  auto& kept = cache[static_cast<std::size_t>(layer)];
  const auto k = kept.defined() ? at::cat({kept.select(0, 0), new_k}, 1) : new_k;
  const auto v = kept.defined() ? at::cat({kept.select(0, 1), new_v}, 1) : new_v;
  if (keep) kept = at::stack({k, v});

  auto x = x0 + linear(attn + "o", attend(q, k, v).flatten(2)) * at_token(2);
  x = x + cross_attention(prefix + "cross_attn.", layer_norm(x, eps, prefix + "norm3").to(dtype), context);
  const auto f = layer_norm(x, eps).to(dtype) * (1 + at_token(4)) + at_token(3);
  return x + linear(prefix + "ffn.2", at::gelu(linear(prefix + "ffn.0", f), "tanh")) * at_token(5);
}

void ReferenceDit::prefill(const at::Tensor& latents, const at::Tensor& text, const at::Tensor& clip,
                           std::int64_t start_frame, Cache& cache) const {
  cache.resize(static_cast<std::size_t>(case_.config.dit.num_layers));
  auto x = patches(latents);
  const auto e0 = time_projection(time_embedding(at::zeros({x.size(0), x.size(1)})));
  const auto context = context_of(text, clip);
  const auto freqs = frequencies(start_frame, latents.size(2), latents.size(3) / 2, latents.size(4) / 2, 0, 0, 0, 0);
  for (std::int64_t i = 0; i < case_.config.dit.num_layers; ++i) x = infer_block(i, x, e0, context, freqs, cache, true);
}

ReferenceDit::Velocity ReferenceDit::denoise(const at::Tensor& latents, const at::Tensor& actions,
                                             const at::Tensor& states, double t, const at::Tensor& text,
                                             const at::Tensor& clip, std::int64_t start_frame, Cache& cache) const {
  const auto frames = latents.size(2), rows = latents.size(3) / 2, cols = latents.size(4) / 2;
  const auto count = actions.size(1), block = (start_frame - 1) / case_.config.latent_frames_per_block;
  const auto video = frames * rows * cols;
  auto x =
      at::cat({patches(latents), actions_of(actions, at::full({actions.size(0), count}, t)), states_of(states)}, 1);
  const auto e = time_embedding(at::full({x.size(0), x.size(1)}, t));
  const auto e0 = time_projection(e);
  const auto context = context_of(text, clip);
  const auto freqs =
      frequencies(start_frame, frames, rows, cols, block * count, count, block * states.size(1), states.size(1));
  for (std::int64_t i = 0; i < case_.config.dit.num_layers; ++i)
    x = infer_block(i, x, e0, context, freqs, cache, false);
  return {unpatchify(head(x.narrow(1, 0, video), e.narrow(1, 0, video)), frames, rows, cols),
          category("action_decoder.layer2", at::relu(category("action_decoder.layer1", x.narrow(1, video, count))))};
}

}  // namespace troupe::bench
