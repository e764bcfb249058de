#pragma once

#include <ATen/core/Tensor.h>

#include "configs/algorithm_config.h"

namespace troupe::model {

/// The estimate of the divergence from a reference policy by one sample, element by element, with x = logp - logp_ref
/// (k1 to k3: J. Schulman 2020, "Approximating KL Divergence"):
///     k1: x     abs: |x|     k2: x^2 / 2     k3: clamp(exp(-y) + y - 1, -10, 10), y = clamp(x, -20, 20)
/// Grad: logp (zero where k3 is clamped).
at::Tensor kl_penalty(const at::Tensor& logp, const at::Tensor& reference_logp, KlEstimator estimator);

}  // namespace troupe::model
