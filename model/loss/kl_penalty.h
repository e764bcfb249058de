#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>

namespace troupe::model {

/// Estimators of the divergence from a reference policy by one sample, x = logp - logp_ref (k1 to k3: J. Schulman 2020,
/// "Approximating KL Divergence"):
///     k1: x     abs: |x|     k2: x^2 / 2     k3: clamp(exp(-y) + y - 1, -10, 10), y = clamp(x, -20, 20)
enum class KlEstimator : std::uint8_t { k1, abs, k2, k3 };

/// "k1" | "abs" | "k2" | "k3". Throws c10::Error on another name.
KlEstimator parse_kl_estimator(std::string_view name);

/// The estimate, element by element. Grad: logp (zero where k3 is clamped).
at::Tensor kl_penalty(const at::Tensor& logp, const at::Tensor& reference_logp, KlEstimator estimator);

}  // namespace troupe::model
