#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "model/policy/flow_step.h"

namespace troupe {

// Chains of a flow-matching policy: sampled from given noise while acting, and their log-probabilities computed again while
// learning (rl.md 7.4 to 7.6). B rows, N steps, "..." one row's chunk ([H,D], or one axis). Types and gradients as in flow_step.h.

/// What the network says about noisy chunks.
struct FlowPrediction {
  at::Tensor velocity;  ///< [B,...]
  at::Tensor std;       ///< [B,...], flow_noise_std of the noise head; only FlowMethod::noise reads it
  at::Tensor value;     ///< [B]; undefined: values do not depend on the chain
};
/// x [B,...] at times t [B].
using FlowNetwork = std::function<FlowPrediction(const at::Tensor& x, const at::Tensor& t)>;

/// Which steps draw, and what becomes of their log-probabilities.
struct FlowSampling {
  FlowMethod method = FlowMethod::sde;
  std::vector<double> times = flow_times(4);
  double noise_level = 0.5;
  bool joint = false;  ///< every step draws, and the initial noise counts as one more
  bool safe = false;   ///< flow_step_logp
  enum class Reduce : std::uint8_t {
    mean,  ///< over the N + 1 log-probabilities: a tempered ratio, as RLinf does
    sum,   ///< of the N + 1
    per_step  ///< the N transitions side by side: an axis of N behind B. The initial noise has no parameters and is left out
  } reduce = Reduce::mean;  ///< of joint chains

  std::int64_t steps() const { return static_cast<std::int64_t>(times.size()) - 1; }
};

/// A sampled chain.
struct FlowChain {
  at::Tensor chain;  ///< [B,N+1,...]: x_0 (noise) .. x_N (actions)
  at::Tensor logp;   ///< [B,...], with Reduce::per_step [B,N,...]: what chain_density of the same weights gives
  at::Tensor value;  ///< [B], mean over all N steps; undefined without FlowPrediction::value

  at::Tensor action() const { return chain.select(1, chain.size(1) - 1); }
};

/// Runs the network N times. Row b draws in step index_B[b] alone, the others are ODE steps; a negative index draws nowhere. With
/// `joint` every step of every row draws. A step without noise takes no part of `noise`.
/// Shapes: initial [B,...]; noise [N,B,...] standard normal, may be undefined where nothing draws; index_B i64 [B]; undefined:
/// negative everywhere (evaluation: with joint false, or with FlowMethod::ode).
/// Grad: none is recorded.
FlowChain sample_flow_chain(const FlowNetwork& network, const at::Tensor& initial, const at::Tensor& noise,
                            const at::Tensor& index_B, const FlowSampling& sampling);

/// The learner's side of a stored chain, whose entries are constants.
struct FlowDensity {
  at::Tensor logp;  ///< as FlowChain::logp
  at::Tensor
      entropy;  ///< [B,...]: FlowMethod::noise: mean over the steps that count (joint: with the initial unit normal); else 0
  at::Tensor value;  ///< [B]: of step index_B[b]; joint: mean over the N steps
};

/// One call of the network on (x_j, x_{j+1}) with j = index_B[b]; joint: N calls. A row with a negative index has log-probability
/// and entropy 0.
/// Shapes: chain [B,N+1,...] of sampling.steps() steps; index_B i64 [B], not read with joint.
/// Grad: whatever the network's predictions depend on. Errors: throws c10::Error on shapes that do not fit.
FlowDensity flow_chain_density(const FlowNetwork& network, const at::Tensor& chain, const at::Tensor& index_B,
                               const FlowSampling& sampling);

}  // namespace troupe
