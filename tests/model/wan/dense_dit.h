#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "model/loss/flow_matching.h"
#include "model/wan/batch_keys.h"
#include "tests/model/wan/network_run.h"
#include "tests/model/wan/tiny_model.h"

namespace troupe::testing {

// The DiT's training forward written the long way: one sequence [clean V | noisy V | actions | states], a dense boolean
// mask from the visibility table, timestep embeddings for every token, explicit softmax. The truth for gradients in
// f64.

/// What a token is: which part of the sequence, which block (0 for frame 0), and its rotation positions.
struct DenseToken {
  enum class Part { clean, noisy, action, state } part;
  std::int64_t block;
  std::int64_t frame, row, col;  ///< frame is the only position of actions and states
};

inline std::vector<DenseToken> dense_tokens(const TinyShape& s, std::int64_t rows, std::int64_t cols) {
  using Part = DenseToken::Part;
  std::vector<DenseToken> out;
  const auto frames = 1 + s.blocks * s.frames_per_block;
  for (const auto part : {Part::clean, Part::noisy}) {
    for (std::int64_t f = 0; f < frames; ++f) {
      const auto block = f == 0 ? 0 : 1 + (f - 1) / s.frames_per_block;
      for (std::int64_t i = 0; i < rows * cols; ++i) out.push_back({part, block, f, i / cols, i % cols});
    }
  }
  for (std::int64_t i = 0; i < s.blocks * s.actions_per_block; ++i) {
    out.push_back({Part::action, 1 + i / s.actions_per_block, i, 0, 0});
  }
  for (std::int64_t i = 0; i < s.blocks * s.states_per_block; ++i) {
    out.push_back({Part::state, 1 + i / s.states_per_block, i, 0, 0});
  }
  return out;
}

/// Which key a query sees in teacher-forced training: clean block k sees clean blocks 0..k inside the window; noisy
/// frames and actions of block k see clean blocks 0..k-1 and their own block; a state token sees states of its own
/// block.
inline bool dense_visible(const DenseToken& q, const DenseToken& k, const TinyShape& s) {
  using Part = DenseToken::Part;
  if (q.part == Part::clean) {
    if (k.part != Part::clean || k.block > q.block) return false;
    const auto last = q.block * s.frames_per_block;  // last frame of the query's block
    return k.frame == 0 || k.frame >= 1 + last - (s.max_blocks * s.frames_per_block + 1);
  }
  if (q.part == Part::state) return k.part == Part::state && k.block == q.block;
  return k.part == Part::clean ? k.block < q.block : k.block == q.block;
}

inline at::Tensor dense_mask(const TinyShape& s, std::int64_t rows, std::int64_t cols) {
  const auto tokens = dense_tokens(s, rows, cols);
  const auto n = static_cast<std::int64_t>(tokens.size());
  auto mask = at::zeros({n, n}, at::TensorOptions().dtype(at::kBool));
  auto cells = mask.accessor<bool, 2>();
  for (std::int64_t q = 0; q < n; ++q) {
    for (std::int64_t k = 0; k < n; ++k) {
      cells[q][k] = dense_visible(tokens[static_cast<std::size_t>(q)], tokens[static_cast<std::size_t>(k)], s);
    }
  }
  return mask;
}

/// One evaluation in f64; v_video and v_action are set by loss().
class DenseDit {
 public:
  DenseDit(TinyShape shape, const NamedTensors& parameters)
      : s_(std::move(shape)), config_(tiny_config(s_)), p_(parameters) {}

  at::Tensor loss(const Batch& batch);
  at::Tensor v_video, v_action;

 private:
  const at::Tensor& w(const std::string& name) const { return p_.at(name); }
  at::Tensor lin(const std::string& n, const at::Tensor& x) const {
    return at::matmul(x, w(n + ".weight").t()) + w(n + ".bias");
  }
  at::Tensor category(const std::string& n, const at::Tensor& x) const {
    return at::matmul(x, w(n + ".W")[0]) + w(n + ".b")[0];
  }
  static at::Tensor ln(const at::Tensor& x, double eps) {
    const auto centred = x - x.mean(-1, true);
    return centred / (centred.square().mean(-1, true) + eps).sqrt();
  }
  at::Tensor affine_ln(const std::string& n, const at::Tensor& x, double eps) const {
    return ln(x, eps) * w(n + ".weight") + w(n + ".bias");
  }
  at::Tensor rms(const std::string& n, const at::Tensor& x) const {
    return x / (x.square().mean(-1, true) + config_.dit.eps).sqrt() * w(n + ".weight");
  }
  static at::Tensor gelu_tanh(const at::Tensor& x) {
    return 0.5 * x * (1 + at::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x.pow(3))));
  }
  at::Tensor patches(const at::Tensor& x) const {
    const auto y = at::conv3d(x, w("patch_embedding.weight"), w("patch_embedding.bias"), {1, 2, 2});
    return y.flatten(2).transpose(1, 2);
  }
  at::Tensor rotate(const at::Tensor& x_BNd) const;
  at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask) const;
  at::Tensor block(const std::string& n, at::Tensor x, const at::Tensor& e0, const at::Tensor& text,
                   const at::Tensor& image) const;
  at::Tensor actions_in(const Batch& batch, const at::Tensor& t_action) const;
  at::Tensor losses(const Batch& batch) const;

  TinyShape s_;
  ModelConfig config_;
  const NamedTensors& p_;
  std::vector<DenseToken> tokens_;
  at::Tensor mask_;
};

inline at::Tensor DenseDit::rotate(const at::Tensor& x_BNd) const {
  const auto heads = config_.dit.num_heads, dh = config_.dit.dim / heads;
  std::vector<double> angles;
  const auto push = [&](std::int64_t p, std::int64_t m) {
    for (std::int64_t j = 0; j < m / 2; ++j) {
      angles.push_back(static_cast<double>(p) /
                       std::pow(10000.0, 2.0 * static_cast<double>(j) / static_cast<double>(m)));
    }
  };
  for (const auto& t : tokens_) {
    if (t.part == DenseToken::Part::clean || t.part == DenseToken::Part::noisy) {
      push(t.frame, dh - 4 * (dh / 6));
      push(t.row, 2 * (dh / 6));
      push(t.col, 2 * (dh / 6));
    } else {
      push(t.frame, dh);
    }
  }
  const auto a = at::tensor(angles, at::TensorOptions().dtype(at::kDouble)).view({1, -1, 1, dh / 2});
  const auto pairs = x_BNd.reshape({x_BNd.size(0), x_BNd.size(1), heads, dh / 2, 2}).contiguous();
  return at::view_as_real(at::view_as_complex(pairs) * at::complex(a.cos(), a.sin())).flatten(2);
}

inline at::Tensor DenseDit::attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                   const at::Tensor& mask) const {
  const auto heads = config_.dit.num_heads, dh = config_.dit.dim / heads;
  const auto split = [&](const at::Tensor& x) { return x.reshape({x.size(0), x.size(1), heads, dh}).transpose(1, 2); };
  auto logits = at::matmul(split(q), split(k).transpose(2, 3)) / std::sqrt(static_cast<double>(dh));
  if (mask.defined()) logits = logits.masked_fill(mask.logical_not(), -std::numeric_limits<double>::infinity());
  return at::matmul(at::softmax(logits, -1), split(v)).transpose(1, 2).flatten(2);
}

inline at::Tensor DenseDit::block(const std::string& n, at::Tensor x, const at::Tensor& e0, const at::Tensor& text,
                                  const at::Tensor& image) const {
  const double eps = config_.dit.eps;
  const auto e = e0 + w(n + "modulation").unsqueeze(1);
  const auto m = [&](std::int64_t i) { return e.select(2, i); };
  const auto h = ln(x, eps) * (1 + m(1)) + m(0);
  const auto s = n + "self_attn.", c = n + "cross_attn.";
  const auto q = rotate(rms(s + "norm_q", lin(s + "q", h))), k = rotate(rms(s + "norm_k", lin(s + "k", h)));
  x = x + lin(s + "o", attend(q, k, lin(s + "v", h), mask_)) * m(2);
  const auto qc = rms(c + "norm_q", lin(c + "q", affine_ln(n + "norm3", x, eps)));
  const auto from_text = attend(qc, rms(c + "norm_k", lin(c + "k", text)), lin(c + "v", text), {});
  const auto from_image = attend(qc, rms(c + "norm_k_img", lin(c + "k_img", image)), lin(c + "v_img", image), {});
  x = x + lin(c + "o", from_text + from_image);
  const auto f = ln(x, eps) * (1 + m(4)) + m(3);
  return x + lin(n + "ffn.2", gelu_tanh(lin(n + "ffn.0", f))) * m(5);
}

inline at::Tensor DenseDit::actions_in(const Batch& batch, const at::Tensor& t_action) const {
  const auto half = config_.dit.dim / 2;
  const auto frequency = at::exp(at::arange(half, at::TensorOptions().dtype(at::kFloat)) *
                                 -(std::log(10000.0F) / static_cast<float>(half)));
  const auto angle = t_action.to(at::kFloat).unsqueeze(-1) * frequency;
  const auto tau = at::cat({angle.sin(), angle.cos()}, -1).to(at::kDouble);
  const auto z = category("action_encoder.W2",
                          at::cat({category("action_encoder.W1", batch.at(batch_keys::kNoisyActions)), tau}, -1));
  return category("action_encoder.W3", z * at::sigmoid(z));
}

inline at::Tensor DenseDit::loss(const Batch& batch) {
  namespace key = batch_keys;
  auto clean = batch.at(key::kCleanLatents), noisy = batch.at(key::kNoisyLatents);
  if (s_.image_to_video) {
    clean = at::cat({clean, batch.at(key::kFirstFrame)}, 1);
    noisy = at::cat({noisy, batch.at(key::kFirstFrame)}, 1);
  }
  const auto count = clean.size(0), frames = clean.size(2), rows = clean.size(3) / 2, cols = clean.size(4) / 2;
  const auto fs = rows * cols, video = frames * fs, d = config_.dit.dim;
  tokens_ = dense_tokens(s_, rows, cols);
  mask_ = dense_mask(s_, rows, cols);
  const auto timesteps = make_flow_schedule().timesteps.to(at::kDouble);
  const auto t_video = timesteps.index({batch.at(key::kVideoIds)}),
             t_action = timesteps.index({batch.at(key::kActionIds)});

  // timesteps of every token, then both MLPs on all of them
  const auto actions = t_action.size(1), states = batch.at(key::kState).size(1);
  const auto t = at::cat({at::zeros({count, video}, timesteps.options()), t_video.repeat_interleave(fs, 1), t_action,
                          t_action.slice(1, 0, actions, actions / states)},
                         1);
  const auto half = config_.dit.freq_dim / 2;
  const auto angle =
      t.unsqueeze(-1) / at::pow(10000.0, at::arange(half, timesteps.options()) / static_cast<double>(half));
  const auto e = lin("time_embedding.2", at::silu(lin("time_embedding.0", at::cat({angle.cos(), angle.sin()}, -1))));
  const auto e0 = lin("time_projection.1", at::silu(e)).view({count, -1, 6, d});

  const auto text = lin("text_embedding.2", gelu_tanh(lin("text_embedding.0", batch.at(key::kContext))));
  const auto hidden = at::gelu(lin("img_emb.proj.1", affine_ln("img_emb.proj.0", batch.at(key::kClip), 1e-5)));
  const auto image = affine_ln("img_emb.proj.4", lin("img_emb.proj.3", hidden), 1e-5);
  const auto states_in =
      category("state_encoder.layer2", at::relu(category("state_encoder.layer1", batch.at(key::kState))));

  auto x = at::cat({patches(clean), patches(noisy), actions_in(batch, t_action), states_in}, 1);
  for (std::int64_t i = 0; i < config_.dit.num_layers; ++i) {
    x = block("blocks." + std::to_string(i) + ".", x, e0, text, image);
  }

  const auto xv = x.narrow(1, video, video), ev = e.narrow(1, video, video);
  const auto shift = w("head.modulation").select(1, 0), scale = w("head.modulation").select(1, 1);
  const auto out = lin("head.head", ln(xv, config_.dit.eps) * (1 + scale + ev) + shift + ev);
  const auto channels = config_.dit.out_dim;
  v_video = at::einsum("bfyxqrc->bcfyqxr", {out.view({count, frames, rows, cols, 2, 2, channels})})
                .reshape({count, channels, frames, 2 * rows, 2 * cols});
  v_action =
      category("action_decoder.layer2", at::relu(category("action_decoder.layer1", x.narrow(1, 2 * video, actions))));
  return losses(batch);
}

inline at::Tensor DenseDit::losses(const Batch& batch) const {
  namespace key = batch_keys;
  const auto weights = make_flow_schedule().weights.to(at::kDouble);
  const auto video_error = (v_video - batch.at(key::kVideoTarget)).square().mean({1, 3, 4});
  const auto counted =
      batch.at(key::kActionMask).to(at::kDouble) * batch.at(key::kHasRealAction).to(at::kDouble).view({-1, 1, 1});
  const auto action_error = ((v_action - batch.at(key::kActionTarget)).square() * counted).sum(2) /
                            static_cast<double>(config_.dit.action_dim);
  return (video_error * weights.index({batch.at(key::kVideoIds)})).mean() +
         (action_error * weights.index({batch.at(key::kActionIds)})).mean();
}

}  // namespace troupe::testing
