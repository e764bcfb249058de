#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "model/policy/flow_step.h"

namespace troupe::model {

// Chains of a flow-matching policy: sampled from given noise while acting, and their log-probabilities computed again
// while learning. B rows, N steps, "..." one row's chunk ([H,D], or one axis).
// Types and gradients as in flow_step.h.

/// What the network says about noisy chunks.
struct FlowPrediction {
  /// [B,...], estimate of noise - action
  at::Tensor velocity;
  /// [B,...], flow_noise_std of the noise head; only FlowMethod::noise reads it
  at::Tensor std;
  /// [B]; undefined: values do not depend on the chain
  at::Tensor value;
};
/// x [B,...] at times t [B].
using FlowNetwork = std::function<FlowPrediction(const at::Tensor& x, const at::Tensor& t)>;

/// Which steps draw, and what becomes of their log-probabilities.
struct FlowSampling {
  FlowMethod method = FlowMethod::sde;
  std::vector<double> times = flow_times(4);
  double noise_level = 0.5;
  /// Every step draws, and the initial noise counts as one more.
  bool joint = false;
  /// flow_step_logp's argument of this name.
  bool safe = false;
  /// What becomes of the N + 1 log-probabilities of a joint chain: the initial noise's and the N transitions'.
  enum class Reduce : std::uint8_t {
    /// their mean: a tempered ratio, as RLinf does
    mean,
    /// their sum: the log-probability of the whole chain
    sum,
    /// the N transitions side by side: an axis of N behind B. The initial noise has no parameters and is left out
    per_step
  } reduce = Reduce::mean;

  std::int64_t steps() const { return static_cast<std::int64_t>(times.size()) - 1; }
};

/// A sampled chain.
struct FlowChain {
  /// [B,N+1,...]: x_0 (noise) .. x_N (actions)
  at::Tensor chain;
  /// [B,...], with Reduce::per_step [B,N,...]: what chain_density of the same weights gives
  at::Tensor logp;
  /// [B], mean over all N steps; undefined without FlowPrediction::value
  at::Tensor value;

  at::Tensor action() const { return chain.select(1, chain.size(1) - 1); }
};

/// Runs the network N times. Row b draws in step index_B[b] alone, the others are ODE steps; a negative index draws
/// nowhere. With `joint` every step of every row draws. A step without noise takes no part of `noise`.
/// Shapes: initial [B,...]; noise [N,B,...] standard normal, may be undefined where nothing draws; index_B i64 [B];
/// undefined: negative everywhere (evaluation: with joint false, or with FlowMethod::ode).
/// Grad: none is recorded.
FlowChain sample_flow_chain(const FlowNetwork& network, const at::Tensor& initial, const at::Tensor& noise,
                            const at::Tensor& index_B, const FlowSampling& sampling);

/// The learner's side of a stored chain, whose entries are constants.
struct FlowDensity {
  /// shaped as FlowChain::logp, with a graph
  at::Tensor logp;
  /// [B,...]: FlowMethod::noise: mean over the steps that count (joint: with the initial unit normal); else 0
  at::Tensor entropy;
  /// [B]: of step index_B[b]; joint: mean over the N steps
  at::Tensor value;
};

/// One call of the network on (x_j, x_{j+1}) with j = index_B[b]; joint: N calls. A row with a negative index has
/// log-probability and entropy 0.
/// Shapes: chain [B,N+1,...] of sampling.steps() steps; index_B i64 [B], not read with joint.
/// Grad: whatever the network's predictions depend on. Errors: throws c10::Error on shapes that do not fit.
FlowDensity flow_chain_density(const FlowNetwork& network, const at::Tensor& chain, const at::Tensor& index_B,
                               const FlowSampling& sampling);

}  // namespace troupe::model
