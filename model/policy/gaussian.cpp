#include "model/policy/gaussian.h"

#include <ATen/ATen.h>

#include <cmath>

namespace troupe::model {

at::Tensor gaussian_logp(const at::Tensor& mean, const at::Tensor& log_std, const at::Tensor& action) {
  const auto z = (action - mean) * (-log_std).exp();
  return -0.5 * z.square() - log_std - kHalfLogTwoPi;
}

at::Tensor gaussian_entropy(const at::Tensor& log_std) { return log_std + (0.5 + kHalfLogTwoPi); }

void draw_gaussian(std::span<const float> mean, const float* log_std, const float* noise, float* action, float* logp) {
  for (std::size_t i = 0; i < mean.size(); ++i) {
    action[i] = noise == nullptr ? mean[i] : mean[i] + std::exp(log_std[i]) * noise[i];
    const float z = (action[i] - mean[i]) * std::exp(-log_std[i]);
    logp[i] = -0.5F * (z * z) - log_std[i] - static_cast<float>(kHalfLogTwoPi);
  }
}

}  // namespace troupe::model
