#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "bench/model/dit_case.h"

namespace troupe::bench {

/// Attention over [batch, rows, heads, head size].
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

/// The DiT as the reference's modules compute it, in plain ATen and written apart from model/: every token's time MLPs
/// and modulations, clean rows and the last block in full, complex f64 rotation, attention block by block with keys
/// and values joined for each call, context projections in every block. Parameters' dtype under the rules of autocast.
class ReferenceDit {
 public:
  /// `weights` are leaves when gradients are wanted.
  ReferenceDit(const DitCase& dit_case, NamedTensors weights);

  /// The loss of the case's batch; with `checkpointed` every block keeps its inputs alone and runs again in backward.
  at::Tensor loss(bool checkpointed) const;

  /// Keys and values of each layer, [2, B, L, H, D], of the frames that a policy has seen.
  using Cache = std::vector<at::Tensor>;
  struct Velocity {
    at::Tensor video, actions;
  };
  /// One denoising step of one branch: n latent frames at `start_frame`, actions and states against the cache, which
  /// stays as it is.
  Velocity denoise(const at::Tensor& latents, const at::Tensor& actions, const at::Tensor& states, double t,
                   const at::Tensor& context, const at::Tensor& clip, std::int64_t start_frame, Cache& cache) const;
  /// Takes clean latents into the cache.
  void prefill(const at::Tensor& latents, const at::Tensor& context, const at::Tensor& clip, std::int64_t start_frame,
               Cache& cache) const;

 private:
  struct Shape;
  at::Tensor w(const std::string& name) const { return weights_.at(name); }
  at::Tensor linear(const std::string& name, const at::Tensor& x) const;
  at::Tensor layer_norm(const at::Tensor& x, double eps, const std::string& affine = "") const;
  at::Tensor rms(const std::string& name, const at::Tensor& x) const;
  at::Tensor category(const std::string& name, const at::Tensor& x) const;
  at::Tensor patches(const at::Tensor& latents) const;
  at::Tensor context_of(const at::Tensor& text, const at::Tensor& clip) const;
  at::Tensor time_embedding(const at::Tensor& t) const;
  at::Tensor time_projection(const at::Tensor& e) const;
  at::Tensor actions_of(const at::Tensor& actions, const at::Tensor& t) const;
  at::Tensor states_of(const at::Tensor& states) const;
  at::Tensor head(const at::Tensor& x, const at::Tensor& e) const;
  at::Tensor unpatchify(const at::Tensor& tokens, std::int64_t frames, std::int64_t rows, std::int64_t cols) const;
  static at::Tensor rotate_pairs(const at::Tensor& x, const at::Tensor& freqs);
  at::Tensor cross_attention(const std::string& prefix, const at::Tensor& x, const at::Tensor& context) const;
  at::Tensor train_block(const std::string& prefix, const at::Tensor& x, const at::Tensor& e0,
                         const at::Tensor& context, const at::Tensor& freqs, const Shape& shape) const;
  at::Tensor infer_block(std::int64_t layer, const at::Tensor& x, const at::Tensor& e0, const at::Tensor& context,
                         const at::Tensor& freqs, Cache& cache, bool keep) const;
  at::Tensor frequencies(std::int64_t start_frame, std::int64_t frames, std::int64_t rows, std::int64_t cols,
                         std::int64_t first_action, std::int64_t actions, std::int64_t first_state,
                         std::int64_t states) const;

  const DitCase& case_;
  NamedTensors weights_;
};

}  // namespace troupe::bench
