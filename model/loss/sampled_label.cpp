#include "model/loss/sampled_label.h"

#include <ATen/ATen.h>

namespace troupe::model {

at::Tensor sampled_label_seed(const at::Tensor& coefficients, const at::Tensor& noise) {
  return (2.0 * coefficients).sqrt() * noise.to(coefficients.options());
}

at::Tensor sampled_label_loss(const at::Tensor& prediction, const at::Tensor& coefficients, const at::Tensor& noise) {
  TORCH_CHECK(prediction.sizes() == noise.sizes(), "sampled_label_loss: prediction ", prediction.sizes(), ", noise ",
              noise.sizes());
  const auto dtype = prediction.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  return (prediction.to(dtype) * sampled_label_seed(coefficients.to(prediction.device(), dtype), noise)).sum();
}

}  // namespace troupe::model
