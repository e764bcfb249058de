#include "model/policy/categorical.h"

#include <ATen/ATen.h>

namespace troupe::model {

at::Tensor categorical_log_probs(const at::Tensor& logits, std::int64_t choices) {
  return logits.to(at::kFloat).view({logits.size(0), -1, choices}).log_softmax(-1);
}

at::Tensor categorical_sample(const at::Tensor& log_probs, const at::Tensor& uniform) {
  // f64: the last sum is then close enough to one that the clamp decides for next to no draw
  const auto cumulative = log_probs.to(at::kDouble).exp().cumsum(-1);
  const auto below = (cumulative <= uniform.to(at::kDouble).unsqueeze(-1)).sum(-1);
  return below.clamp_max(log_probs.size(-1) - 1).to(at::kFloat);
}

at::Tensor categorical_mode(const at::Tensor& log_probs) { return log_probs.argmax(-1).to(at::kFloat); }

at::Tensor categorical_logp(const at::Tensor& log_probs, const at::Tensor& action) {
  return log_probs.gather(-1, action.to(at::kLong).unsqueeze(-1)).squeeze(-1);
}

at::Tensor categorical_entropy(const at::Tensor& log_probs) { return -(log_probs.exp() * log_probs).sum(-1); }

}  // namespace troupe::model
