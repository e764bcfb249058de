#include "model/policy/categorical.h"

#include <ATen/ATen.h>

#include <limits>

namespace troupe::model {

at::Tensor masked_logits(const at::Tensor& logits, const at::Tensor& mask) {
  TORCH_CHECK(mask.defined() && mask.sizes() == logits.sizes(), "a mask has a number for each of ", logits.size(1),
              " choices");
  const auto allowed = mask != 0;
  return logits.to(at::kFloat)
      .masked_fill(allowed.logical_not().logical_and(allowed.any(1, /*keepdim=*/true)), kMaskedLogit);
}

at::Tensor categorical_log_probs(const at::Tensor& logits, std::int64_t choices) {
  return logits.to(at::kFloat).view({logits.size(0), -1, choices}).log_softmax(-1);
}

at::Tensor categorical_sample(const at::Tensor& log_probs, const at::Tensor& uniform, bool is_masked) {
  // f64: the last sum is then close enough to one that the clamp decides for next to no draw
  const auto cumulative = log_probs.to(at::kDouble).exp().cumsum(-1);
  const auto below = (cumulative <= uniform.to(at::kDouble).unsqueeze(-1)).sum(-1);
  if (!is_masked) return below.clamp_max(log_probs.size(-1) - 1).to(at::kFloat);
  const auto last = (cumulative < cumulative.narrow(-1, log_probs.size(-1) - 1, 1)).sum(-1);
  return at::minimum(below, last).to(at::kFloat);
}

at::Tensor categorical_mode(const at::Tensor& log_probs) { return log_probs.argmax(-1).to(at::kFloat); }

at::Tensor categorical_logp(const at::Tensor& log_probs, const at::Tensor& action, bool is_masked) {
  const auto logp = log_probs.gather(-1, action.to(at::kLong).unsqueeze(-1)).squeeze(-1);
  if (!is_masked) return logp;
  return logp.masked_fill(logp < kMaskedLogit / 2, -std::numeric_limits<double>::infinity());
}

at::Tensor categorical_entropy(const at::Tensor& log_probs) { return -(log_probs.exp() * log_probs).sum(-1); }

}  // namespace troupe::model
