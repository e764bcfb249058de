#include "model/loss/kl_penalty.h"

#include <ATen/ATen.h>

namespace troupe::model {

at::Tensor kl_penalty(const at::Tensor& logp, const at::Tensor& reference_logp, KlEstimator estimator) {
  auto x = logp - reference_logp;
  switch (estimator) {
    case KlEstimator::k1:
      return x;
    case KlEstimator::abs:
      return x.abs();
    case KlEstimator::k2:
      return 0.5 * x.square();
    case KlEstimator::k3:
      break;
  }
  const auto y = x.clamp(-20, 20);
  return ((-y).exp() + y - 1).clamp(-10, 10);
}

}  // namespace troupe::model
