#include "model/loss/sampled_label.h"

#include <ATen/ATen.h>

namespace troupe::model {

at::Tensor sampled_label_loss(const at::Tensor& prediction, const at::Tensor& coefficients, const at::Tensor& noise) {
  TORCH_CHECK(prediction.sizes() == noise.sizes(), "sampled_label_loss: prediction ", prediction.sizes(), ", noise ",
              noise.sizes());
  const auto dtype = prediction.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const auto seed = (2.0 * coefficients.to(prediction.device(), dtype)).sqrt() * noise.to(prediction.device(), dtype);
  return (prediction.to(dtype) * seed).sum();
}

}  // namespace troupe::model
