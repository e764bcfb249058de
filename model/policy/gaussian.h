#pragma once

#include <ATen/core/Tensor.h>

#include <span>

namespace troupe::model {

// The diagonal Gaussian over action chunks, which on-policy algorithms train. Shape legend: N batch rows, W = K*A
// numbers of a row's chunk. `mean` [N,W]; `log_std` [W] (one for all states) or [N,W]. f32; differentiable by autograd.

/// log(2 pi) / 2
inline constexpr double kHalfLogTwoPi = 0.91893853320467274178;

/// log N(action; mean, std^2) of every element, [N,W]: -z^2 / 2 - log_std - log(2 pi) / 2, z = (action - mean) / std.
at::Tensor gaussian_logp(const at::Tensor& mean, const at::Tensor& log_std, const at::Tensor& action);

/// log(2 pi e std^2) / 2 of every element, shaped like log_std.
at::Tensor gaussian_entropy(const at::Tensor& log_std);

/// One row in plain memory: action = mean + exp(log_std) noise, for standard normal noise [W], or the mean where
/// `noise` is null, and its density, as gaussian_logp's. Not clipped to any bounds: the density is that of what is
/// returned. log_std, action and logp are [W] too.
void draw_gaussian(std::span<const float> mean, const float* log_std, const float* noise, float* action, float* logp);

}  // namespace troupe::model
