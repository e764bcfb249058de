#include "model/policy/gaussian.h"

#include <ATen/ATen.h>

namespace troupe::model {

at::Tensor gaussian_sample(const at::Tensor& mean, const at::Tensor& log_std, const at::Tensor& noise) {
  return mean + log_std.exp() * noise;
}

at::Tensor gaussian_logp(const at::Tensor& mean, const at::Tensor& log_std, const at::Tensor& action) {
  const auto z = (action - mean) * (-log_std).exp();
  return -0.5 * z.square() - log_std - kHalfLogTwoPi;
}

at::Tensor gaussian_entropy(const at::Tensor& log_std) { return log_std + (0.5 + kHalfLogTwoPi); }

}  // namespace troupe::model
