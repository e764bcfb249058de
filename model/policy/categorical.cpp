#include "model/policy/categorical.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
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

at::Tensor categorical_logp(const at::Tensor& log_probs, const at::Tensor& action, bool is_masked) {
  const auto logp = log_probs.gather(-1, action.to(at::kLong).unsqueeze(-1)).squeeze(-1);
  if (!is_masked) return logp;
  return logp.masked_fill(logp < kMaskedLogit / 2, -std::numeric_limits<double>::infinity());
}

at::Tensor categorical_entropy(const at::Tensor& log_probs) { return -(log_probs.exp() * log_probs).sum(-1); }

void log_softmax_choices(const float* logits, const float* mask, std::span<float> log_probs) {
  std::copy_n(logits, log_probs.size(), log_probs.begin());
  if (mask != nullptr && std::any_of(mask, mask + log_probs.size(), [](float allowed) { return allowed != 0; })) {
    for (std::size_t c = 0; c < log_probs.size(); ++c) {
      if (mask[c] == 0) log_probs[c] = kMaskedLogit;
    }
  }
  const float largest = *std::max_element(log_probs.begin(), log_probs.end());
  float sum = 0;
  for (const float logit : log_probs) sum += std::exp(logit - largest);
  const float log_sum = std::log(sum);
  for (float& logit : log_probs) logit = logit - largest - log_sum;
}

std::int64_t drawn_choice(std::span<const float> log_probs, float uniform) {
  double cumulative = 0;
  std::size_t last = 0;
  for (std::size_t c = 0; c < log_probs.size(); ++c) {
    const double probability = std::exp(static_cast<double>(log_probs[c]));
    cumulative += probability;
    if (cumulative > static_cast<double>(uniform)) return static_cast<std::int64_t>(c);
    if (probability > 0) last = c;
  }
  return static_cast<std::int64_t>(last);
}

std::int64_t likeliest_choice(std::span<const float> log_probs) {
  return std::max_element(log_probs.begin(), log_probs.end()) - log_probs.begin();
}

}  // namespace troupe::model
