#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "base/enum_names.h"
#include "base/result.h"
#include "configs/policy_config.h"

namespace troupe::model {

// One denoising step of a flow-matching policy and its density (Flow-SDE and Flow-Noise: arXiv:2510.25889). Time runs
// from t = 1 (noise) to t = 0 (action),
//     x_t = t noise + (1 - t) action     v = noise - action
// Tensors are f32 or f64, results have the type of x. B rows; "..." stands for the shape of one row's chunk.

/// How a step goes from x_i to x_{i+1}.
enum class FlowMethod : std::uint8_t {
  ode,    ///< no noise
  sde,    ///< Flow-SDE: noise that keeps the marginals of the ODE
  cps,    ///< Flow-CPS: noise and x1 share the coefficient t - delta by cosine and sine; its last step draws nothing
  noise,  ///< Flow-Noise: a width that the network learns
};
constexpr auto enum_names(FlowMethod) { return std::array{"ode", "sde", "cps", "noise"}; }

/// t_0 = 1 > ... > t_N = 0 with t_i = 1 - i / N.
std::vector<double> flow_times(std::int64_t steps);

/// The noise level a after `step` iterations: noise_level + (noise_level_end - noise_level) step / noise_anneal_steps,
/// with step between 0 and noise_anneal_steps; noise_level where noise_anneal_steps is 0. It is the a of Flow-SDE's
/// sigma = a sqrt(t / (1 - t)).
double flow_noise_level(const FlowPolicyConfig& flow, std::int64_t step);

/// Errors: invalid_argument where no step may be the one that draws, or steps are left out although all draw (joint),
/// naming the keys.
Result<void> check_drawing_steps(const FlowPolicyConfig& flow);

/// A step's mean is clean * x0 + noisy * x1, with the network's predictions x0 of the action and x1 of the noise; std
/// is its width.
struct FlowWeights {
  double clean = 0, noisy = 0;
  double std = 0;  ///< FlowMethod::noise: 0, the network says it
};

/// Weights of step `index` of the decreasing schedule `times` (N + 1 numbers, the last may be 0), with t = times[index]
/// and delta = t - times[index + 1]:
///     ode, noise  1 - (t - delta), t - delta, 0
///     sde         1 - (t - delta), t - delta - sigma^2 delta / (2 t), sqrt(delta) sigma;  sigma = a sqrt(t / (1 - t)),
///                 in the first step, where t is 1 or near it, with t_1 in the denominator
///     cps         1 - (t - delta), (t - delta) cos(pi a / 2), (t - delta) sin(pi a / 2)
/// Errors: throws c10::Error on an index outside the schedule.
FlowWeights flow_weights(FlowMethod method, const std::vector<double>& times, std::int64_t index, double noise_level);

/// Below this a width counts as none: the step is deterministic, and its density, which would be a spike, counts as 1.
inline constexpr double kDeterministicStd = 1e-6;

/// Weights of one step for every row, each [B,1,...] like x: rows may be at different steps.
struct FlowRowWeights {
  at::Tensor time, clean, noisy, std;
};
/// Row b takes step index_B[b] with `method`. Shapes: index_B i64 [B]; `like` [B,...] gives type and number of
/// dimensions.
FlowRowWeights flow_row_weights(FlowMethod method, const std::vector<double>& times, double noise_level,
                                const at::Tensor& index_B, const at::Tensor& like);

/// clean * (x - t v) + noisy * (x + (1 - t) v). Grad: v (and x).
at::Tensor flow_step_mean(const at::Tensor& x, const at::Tensor& velocity, const FlowRowWeights& weights);
at::Tensor flow_step_mean(const at::Tensor& x, const at::Tensor& velocity, double time, const FlowWeights& weights);

/// log N(x; mean, std^2) of every element, 0 and without gradient where std < kDeterministicStd. `safe`: -(x - mean)^2
/// there instead of the density, without normaliser and scale. Densities above one are legal. Grad: mean, std, x.
at::Tensor flow_step_logp(const at::Tensor& x, const at::Tensor& mean, const at::Tensor& std, bool safe);

/// 0.5 log(2 pi e std^2) of every element; 0 where std < kDeterministicStd.
at::Tensor flow_step_entropy(const at::Tensor& std);

/// Width of a Flow-Noise step from the noise head's output u:
///     s = exp(logvar / 2)   logvar = 2 log lo + (2 log hi - 2 log lo) (tanh(u) + 1) / 2
/// never below 1e-3.
at::Tensor flow_noise_std(const at::Tensor& u, double lo = 0.08, double hi = 0.16);

}  // namespace troupe::model
