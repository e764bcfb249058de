#include "bench/model/reference_dit.h"

#include <ATen/ATen.h>

#include <cmath>

#include "bench/model/checkpoint.h"
#include "model/loss/flow_matching.h"
#include "model/wan/batch_keys.h"

namespace troupe::bench {
namespace {

using torch::autograd::variable_list;

/// positions[n] * 10000^(-2j/m), as complex rotations [n, m/2].
at::Tensor rotations(const at::Tensor& positions, std::int64_t m) {
  const auto inverse =
      at::pow(10000.0, at::arange(0, m, 2, at::TensorOptions().dtype(at::kDouble)) / static_cast<double>(-m));
  const auto angle = at::outer(positions.to(at::kDouble), inverse);
  return at::polar(at::ones_like(angle), angle);
}

at::Tensor positions(std::int64_t begin, std::int64_t count) { return at::arange(begin, begin + count); }

at::Tensor sinusoid(const at::Tensor& t, std::int64_t channels) {
  const auto half = channels / 2;
  const auto exponent = at::arange(half, at::TensorOptions().dtype(at::kDouble)) / static_cast<double>(half);
  const auto angle = at::outer(t.flatten().to(at::kDouble), at::pow(10000.0, -exponent));
  return at::cat({angle.cos(), angle.sin()}, 1).view({t.size(0), t.size(1), channels});
}

}  // namespace

at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  return at::scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)).transpose(1, 2);
}

/// What the blocks need to know of the sequence [clean V | noisy V | A | S].
struct ReferenceDit::Shape {
  std::int64_t frames, rows, cols, per_block, blocks, actions, states;  // actions and states of one block
  std::int64_t frame_tokens() const { return rows * cols; }
  std::int64_t video() const { return frames * frame_tokens(); }
};

at::Tensor ReferenceDit::rotate_pairs(const at::Tensor& x, const at::Tensor& freqs) {
  const auto pairs = at::view_as_complex(x.to(at::kDouble).unflatten(-1, {x.size(-1) / 2, 2}).contiguous());
  return at::view_as_real(pairs * freqs.unsqueeze(1)).flatten(3).to(x.scalar_type());
}

ReferenceDit::ReferenceDit(const DitCase& dit_case, NamedTensors weights)
    : case_(dit_case), weights_(std::move(weights)) {}

at::Tensor ReferenceDit::linear(const std::string& name, const at::Tensor& x) const {
  const auto weight = w(name + ".weight");
  return at::linear(x.to(weight.scalar_type()), weight, w(name + ".bias"));
}

at::Tensor ReferenceDit::layer_norm(const at::Tensor& x, double eps, const std::string& affine) const {
  if (affine.empty()) return at::layer_norm(x.to(at::kFloat), {x.size(-1)}, {}, {}, eps);
  return at::layer_norm(x.to(at::kFloat), {x.size(-1)}, w(affine + ".weight").to(at::kFloat),
                        w(affine + ".bias").to(at::kFloat), eps);
}

at::Tensor ReferenceDit::rms(const std::string& name, const at::Tensor& x) const {
  const auto wide = x.to(at::kFloat);
  return (wide * at::rsqrt(wide.pow(2).mean(-1, true) + case_.config.dit.eps)).to(x.scalar_type()) * w(name);
}

at::Tensor ReferenceDit::category(const std::string& name, const at::Tensor& x) const {
  const auto ids = at::zeros({x.size(0)}, at::TensorOptions().dtype(at::kLong));
  const auto weight = w(name + ".W").index_select(0, ids);
  return at::bmm(x.to(weight.scalar_type()), weight) + w(name + ".b").index_select(0, ids).unsqueeze(1);
}

at::Tensor ReferenceDit::patches(const at::Tensor& latents) const {
  const auto weight = w("patch_embedding.weight");
  return at::conv3d(latents.to(weight.scalar_type()), weight, w("patch_embedding.bias"), {1, 2, 2})
      .flatten(2)
      .transpose(1, 2);
}

at::Tensor ReferenceDit::context_of(const at::Tensor& text, const at::Tensor& clip) const {
  const auto from_text = linear("text_embedding.2", at::gelu(linear("text_embedding.0", text), "tanh"));
  const auto normed = layer_norm(clip, 1e-5, "img_emb.proj.0");
  const auto hidden = linear("img_emb.proj.3", at::gelu(linear("img_emb.proj.1", normed)));
  return at::cat({layer_norm(hidden, 1e-5, "img_emb.proj.4").to(from_text.scalar_type()), from_text}, 1);
}

at::Tensor ReferenceDit::time_embedding(const at::Tensor& t) const {
  const auto s = sinusoid(t, case_.config.dit.freq_dim);
  return linear("time_embedding.2", at::silu(linear("time_embedding.0", s)));
}

at::Tensor ReferenceDit::time_projection(const at::Tensor& e) const {
  return linear("time_projection.1", at::silu(e)).unflatten(2, {6, case_.config.dit.dim});
}

at::Tensor ReferenceDit::actions_of(const at::Tensor& actions, const at::Tensor& t) const {
  const auto half = case_.config.dit.dim / 2;
  const float step = std::log(10000.0F) / static_cast<float>(half);
  const auto frequency = at::exp(at::arange(half, at::TensorOptions().dtype(at::kFloat)) * -step);
  const auto angle = t.to(at::kFloat).unsqueeze(-1) * frequency;
  const auto a = category("action_encoder.W1", actions);
  const auto tau = at::cat({angle.sin(), angle.cos()}, -1).to(a.scalar_type());
  return category("action_encoder.W3", at::silu(category("action_encoder.W2", at::cat({a, tau}, -1))));
}

at::Tensor ReferenceDit::states_of(const at::Tensor& states) const {
  return category("state_encoder.layer2", at::relu(category("state_encoder.layer1", states)));
}

at::Tensor ReferenceDit::head(const at::Tensor& x, const at::Tensor& e) const {
  const auto parts = (w("head.modulation").unsqueeze(1) + e.unsqueeze(2)).chunk(2, 2);
  return linear("head.head", layer_norm(x, case_.config.dit.eps) * (1 + parts[1].squeeze(2)) + parts[0].squeeze(2));
}

at::Tensor ReferenceDit::unpatchify(const at::Tensor& tokens, std::int64_t frames, std::int64_t rows,
                                    std::int64_t cols) const {
  const auto channels = case_.config.dit.out_dim;
  return at::einsum("bfhwpqrc->bcfphqwr", {tokens.reshape({tokens.size(0), frames, rows, cols, 1, 2, 2, channels})})
      .reshape({tokens.size(0), channels, frames, 2 * rows, 2 * cols});
}

at::Tensor ReferenceDit::cross_attention(const std::string& prefix, const at::Tensor& x,
                                         const at::Tensor& context) const {
  const auto heads = [&](const at::Tensor& t) { return t.unflatten(2, {case_.config.dit.num_heads, -1}); };
  const auto image_tokens = case_.batch.at(batch_keys::kClip).size(1);
  const auto image = context.narrow(1, 0, image_tokens), text = context.slice(1, image_tokens);
  const auto q = heads(rms(prefix + "norm_q.weight", linear(prefix + "q", x)));
  const auto k = heads(rms(prefix + "norm_k.weight", linear(prefix + "k", text))),
             v = heads(linear(prefix + "v", text));
  const auto ki = heads(rms(prefix + "norm_k_img.weight", linear(prefix + "k_img", image)));
  const auto vi = heads(linear(prefix + "v_img", image));
  const auto from_image = attend(q, ki, vi).flatten(2);
  return linear(prefix + "o", attend(q, k, v).flatten(2) + from_image);
}

at::Tensor ReferenceDit::train_block(const std::string& prefix, const at::Tensor& x0, const at::Tensor& e0,
                                     const at::Tensor& context, const at::Tensor& freqs, const Shape& s) const {
  const auto eps = case_.config.dit.eps;
  const auto e = (w(prefix + "modulation").unsqueeze(1) + e0).chunk(6, 2);
  const auto at_token = [&](std::size_t i) { return e[i].squeeze(2); };
  const auto heads = [&](const at::Tensor& t) { return t.unflatten(2, {case_.config.dit.num_heads, -1}); };
  const auto attn = prefix + "self_attn.";

  const auto h = layer_norm(x0, eps) * (1 + at_token(1)) + at_token(0);
  const auto q = rotate_pairs(heads(rms(attn + "norm_q.weight", linear(attn + "q", h))), freqs);
  const auto k = rotate_pairs(heads(rms(attn + "norm_k.weight", linear(attn + "k", h))), freqs);
  const auto v = heads(linear(attn + "v", h));

  // clean frames, then noisy frames, then actions, then states, each block by itself
  const auto fs = s.frame_tokens(), video = s.video(), noisy = video, action0 = 2 * video;
  const auto state0 = action0 + s.blocks * s.actions;
  const auto rows = [](const at::Tensor& t, std::int64_t begin, std::int64_t count) {
    return t.narrow(1, begin, count);
  };
  std::vector<at::Tensor> out{attend(rows(q, 0, fs), rows(k, 0, fs), rows(v, 0, fs))};
  for (std::int64_t i = 0; i < s.blocks; ++i) {
    const auto begin = (1 + i * s.per_block) * fs, count = s.per_block * fs;
    out.push_back(attend(rows(q, begin, count), rows(k, 0, begin + count), rows(v, 0, begin + count)));
  }
  out.push_back(attend(rows(q, noisy, fs), rows(k, noisy, fs), rows(v, noisy, fs)));
  const auto context_of_block = [&](const at::Tensor& t, std::int64_t i) {
    const auto begin = (1 + i * s.per_block) * fs, count = s.per_block * fs;
    return at::cat({rows(t, 0, begin), rows(t, noisy + begin, count), rows(t, action0 + i * s.actions, s.actions),
                    rows(t, state0 + i * s.states, s.states)},
                   1);
  };
  for (std::int64_t i = 0; i < s.blocks; ++i) {
    out.push_back(attend(rows(q, noisy + (1 + i * s.per_block) * fs, s.per_block * fs), context_of_block(k, i),
                         context_of_block(v, i)));
  }
  for (std::int64_t i = 0; i < s.blocks; ++i) {
    out.push_back(attend(rows(q, action0 + i * s.actions, s.actions), context_of_block(k, i), context_of_block(v, i)));
  }
  for (std::int64_t i = 0; i < s.blocks; ++i) {
    const auto begin = state0 + i * s.states;
    out.push_back(attend(rows(q, begin, s.states), rows(k, begin, s.states), rows(v, begin, s.states)));
  }
  auto x = x0 + linear(attn + "o", at::cat(out, 1).flatten(2)) * at_token(2);
  x = x + cross_attention(prefix + "cross_attn.", layer_norm(x, eps, prefix + "norm3"), context);
  const auto f = layer_norm(x, eps) * (1 + at_token(4)) + at_token(3);
  return x + linear(prefix + "ffn.2", at::gelu(linear(prefix + "ffn.0", f), "tanh")) * at_token(5);
}

at::Tensor ReferenceDit::frequencies(std::int64_t start_frame, std::int64_t frames, std::int64_t rows,
                                     std::int64_t cols, std::int64_t first_action, std::int64_t actions,
                                     std::int64_t first_state, std::int64_t states) const {
  const auto size = case_.config.dit.dim / case_.config.dit.num_heads, side = 2 * (size / 6);
  const auto spread = [&](const at::Tensor& t, std::int64_t axis) {
    std::vector<std::int64_t> shape{1, 1, 1, t.size(1)};
    shape[static_cast<std::size_t>(axis)] = t.size(0);
    return t.view(shape).expand({frames, rows, cols, t.size(1)});
  };
  const auto video =
      at::cat({spread(rotations(positions(start_frame, frames), size - 2 * side), 0),
               spread(rotations(positions(0, rows), side), 1), spread(rotations(positions(0, cols), side), 2)},
              3)
          .flatten(0, 2);
  return at::cat(
      {video, rotations(positions(first_action, actions), size), rotations(positions(first_state, states), size)}, 0);
}

at::Tensor ReferenceDit::loss(bool checkpointed) const {
  namespace key = batch_keys;
  const auto& batch = case_.batch;
  const auto schedule = make_flow_schedule();
  const auto &noisy_latents = batch.at(key::kNoisyLatents), &actions = batch.at(key::kNoisyActions);
  const auto &video_ids = batch.at(key::kVideoIds), &action_ids = batch.at(key::kActionIds);
  const auto per_block = case_.config.latent_frames_per_block;
  Shape s{noisy_latents.size(2), noisy_latents.size(3) / 2, noisy_latents.size(4) / 2, per_block, 0, 0, 0};
  s.blocks = (s.frames - 1) / per_block;
  s.actions = actions.size(1) / s.blocks;
  s.states = batch.at(key::kState).size(1) / s.blocks;

  const auto t_video = schedule.timesteps.index({video_ids}), t_action = schedule.timesteps.index({action_ids});
  const auto t_noisy = at::cat({t_video.repeat_interleave(s.frame_tokens(), 1), t_action,
                                t_action.slice(1, 0, t_action.size(1), s.actions / s.states)},
                               1);
  const auto e = time_embedding(t_noisy);
  const auto e_clean = time_embedding(at::zeros({noisy_latents.size(0), s.video()}));
  const auto e0 = at::cat({time_projection(e_clean), time_projection(e)}, 1);
  const auto context = context_of(batch.at(key::kContext), batch.at(key::kClip));
  auto x = at::cat({patches(batch.at(key::kCleanLatents)), patches(noisy_latents), actions_of(actions, t_action),
                    states_of(batch.at(key::kState))},
                   1);
  const auto video_freqs = frequencies(0, s.frames, s.rows, s.cols, 0, 0, 0, 0);
  const auto freqs = at::cat(
      {video_freqs, frequencies(0, s.frames, s.rows, s.cols, 0, s.blocks * s.actions, 0, s.blocks * s.states)}, 0);
  for (std::int64_t i = 0; i < case_.config.dit.num_layers; ++i) {
    const auto prefix = "blocks." + std::to_string(i) + ".";
    if (!checkpointed) {
      x = train_block(prefix, x, e0, context, freqs, s);
      continue;
    }
    std::vector<std::string> names;
    variable_list inputs{x, e0, context};
    for (auto it = weights_.lower_bound(prefix); it != weights_.end() && it->first.starts_with(prefix); ++it) {
      names.push_back(it->first);
      inputs.push_back(it->second);
    }
    const Segment segment = [this, prefix, names, freqs, s](const variable_list& in) {
      NamedTensors own;
      for (std::size_t n = 0; n < names.size(); ++n) own[names[n]] = in[3 + n];
      return variable_list{ReferenceDit(case_, own).train_block(prefix, in[0], in[1], in[2], freqs, s)};
    };
    x = Checkpoint::apply(segment, at::TensorList(inputs))[0];
  }
  const auto noisy = x.slice(1, s.video());
  const auto v_video =
      unpatchify(head(noisy.narrow(1, 0, s.video()), e.narrow(1, 0, s.video())), s.frames, s.rows, s.cols);
  const auto v_action =
      category("action_decoder.layer2",
               at::relu(category("action_decoder.layer1", noisy.narrow(1, s.video(), actions.size(1)))));
  const auto video_error =
      at::mse_loss(v_video.to(at::kFloat), batch.at(key::kVideoTarget).to(at::kFloat), 0).mean({1, 3, 4});
  const auto action_error = at::mse_loss(v_action.to(at::kFloat), batch.at(key::kActionTarget).to(at::kFloat), 0) *
                            batch.at(key::kActionMask) * batch.at(key::kHasRealAction).view({-1, 1, 1});
  return (video_error * schedule.weights.index({video_ids})).mean() +
         (action_error.mean(2) * schedule.weights.index({action_ids})).mean();
}

}  // namespace troupe::bench
