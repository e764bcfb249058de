#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace troupe::model {

// The diagonal Gaussian squeezed into the bounds of the actions by tanh (arXiv:1812.05905, appendix C): u = mean +
// exp(log_std) noise, a = scale tanh(u) + bias. Shape legend: N batch rows, W = K*A numbers of a row's action chunk.
// f32; differentiable by autograd.

/// Centre and half width of the actions' bounds, [W]: the A bounds repeated K times.
struct ActionRange {
  /// [W], (high - low) / 2
  at::Tensor scale;
  /// [W], (high + low) / 2
  at::Tensor bias;
};
ActionRange make_action_range(const std::vector<float>& low, const std::vector<float>& high, std::int64_t chunk);

/// lo + (hi - lo) (tanh(raw) + 1) / 2: the logarithm of the standard deviation from a head's output, smoothly inside
/// (lo, hi).
at::Tensor squash_log_std(const at::Tensor& raw, double lo, double hi);

/// Keeps the logarithm of what tanh does to volume finite (TanhCorrection::epsilon).
inline constexpr double kTanhEpsilon = 1e-6;

/// How the density counts what tanh does to volume.
enum class TanhCorrection : std::uint8_t {
  /// log(scale (1 - tanh(u)^2) + 1e-6), the reference's
  epsilon,
  /// log(scale) + 2 (log 2 - u - softplus(-2u)), exact for any u
  stable,
};

/// A sample and its unreduced log-density.
struct SquashedAction {
  /// [N,W], inside the bounds
  at::Tensor action;
  /// [N,W]: log N(u; mean, std^2) - log |da/du|
  at::Tensor logp;
  /// [N,W], the Gaussian's draw before tanh
  at::Tensor u;
};

/// mean, log_std, noise (standard normal) [N,W]. Gradients flow into mean and log_std through both results
/// (reparametrised). `epsilon` is the constant of TanhCorrection::epsilon.
SquashedAction sample_squashed(const at::Tensor& mean, const at::Tensor& log_std, const at::Tensor& noise,
                               const ActionRange& range, TanhCorrection correction = TanhCorrection::epsilon,
                               double epsilon = kTanhEpsilon);

/// log |da/du| of every element, for u [N,W]: log(scale (1 - tanh(u)^2)) as `correction` computes it.
at::Tensor squash_log_slope(const at::Tensor& u, const ActionRange& range, TanhCorrection correction,
                            double epsilon = kTanhEpsilon);

/// The action of the mean: scale tanh(mean) + bias.
at::Tensor squashed_mode(const at::Tensor& mean, const ActionRange& range);

}  // namespace troupe::model
