#include "model/policy/action_head_pass.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "model/policy/categorical.h"
#include "model/policy/gaussian.h"

namespace troupe::model {

ActionHeadPass::ActionHeadPass(const ActionHead& head, std::int64_t rows) : head_(head), rows_(rows) {
  logp_ = at::empty({rows, head.logp_width()}, at::kFloat);
  entropy_ = at::empty({rows, head.logp_width()}, at::kFloat);
  d_outputs_ = at::empty({rows, head.outputs()}, at::kFloat);
  saved_.resize(static_cast<std::size_t>(rows * head.outputs()));
  if (head.kind() == ActionHead::Kind::categorical) {
    chosen_.resize(static_cast<std::size_t>(rows * head.chunk()));
    probability_.resize(saved_.size());
  } else {
    inverse_std_.resize(static_cast<std::size_t>(head.outputs()));
    d_log_std_.resize(inverse_std_.size());
  }
}

void ActionHeadPass::forward(const ParamView& actor, const at::Tensor& outputs, const at::Tensor& action,
                             const at::Tensor& mask) {
  TORCH_CHECK(action.scalar_type() == at::kFloat && action.is_contiguous() && action.dim() == 2 &&
                  action.size(0) == rows_ && action.size(1) == head_.action_width(),
              "actions have shape ", action.sizes(), "; they must be contiguous f32 [", rows_, ", ",
              head_.action_width(), "]");
  const bool is_masked = head_.is_masked();
  TORCH_CHECK(!is_masked || (mask.defined() && mask.scalar_type() == at::kFloat && mask.is_contiguous() &&
                             mask.sizes() == outputs.sizes()),
              "a mask must be contiguous f32 [", rows_, ", ", head_.choices(), "]");
  if (head_.kind() == ActionHead::Kind::categorical) {
    forward_categorical(outputs.const_data_ptr<float>(), action.const_data_ptr<float>(),
                        is_masked ? mask.const_data_ptr<float>() : nullptr);
  } else {
    forward_gaussian(actor, outputs.const_data_ptr<float>(), action.const_data_ptr<float>());
  }
}

const at::Tensor& ActionHeadPass::backward(const at::Tensor& d_logp, const at::Tensor& d_entropy,
                                           const ParamView& gradients) {
  if (head_.kind() == ActionHead::Kind::categorical) {
    backward_categorical(d_logp.const_data_ptr<float>(), d_entropy.const_data_ptr<float>());
  } else {
    backward_gaussian(d_logp.const_data_ptr<float>(), d_entropy.const_data_ptr<float>(), gradients);
  }
  return d_outputs_;
}

void ActionHeadPass::forward_gaussian(const ParamView& actor, const float* mean, const float* action) {
  const auto width = static_cast<std::size_t>(head_.outputs());
  const float* log_std = actor[ActionHead::kLogStd].const_data_ptr<float>();
  float* logp = logp_.data_ptr<float>();
  float* entropy = entropy_.data_ptr<float>();
  for (std::size_t i = 0; i < width; ++i) inverse_std_[i] = std::exp(-log_std[i]);
  constexpr float kHalf = static_cast<float>(kHalfLogTwoPi), kEntropy = static_cast<float>(0.5 + kHalfLogTwoPi);
  for (std::size_t at = 0; at < saved_.size(); at += width) {
    for (std::size_t i = 0; i < width; ++i) {
      const float z = (action[at + i] - mean[at + i]) * inverse_std_[i];
      saved_[at + i] = z;
      logp[at + i] = -0.5f * (z * z) - log_std[i] - kHalf;
      entropy[at + i] = log_std[i] + kEntropy;
    }
  }
}

void ActionHeadPass::backward_gaussian(const float* d_logp, const float* d_entropy, const ParamView& gradients) {
  // d logp / d mean = z / std;  d logp / d log_std = z^2 - 1;  d entropy / d log_std = 1
  const auto width = static_cast<std::size_t>(head_.outputs());
  float* d_mean = d_outputs_.data_ptr<float>();
  std::fill(d_log_std_.begin(), d_log_std_.end(), 0.0);
  for (std::size_t at = 0; at < saved_.size(); at += width) {
    for (std::size_t i = 0; i < width; ++i) {
      const float z = saved_[at + i], d = d_logp[at + i];
      d_mean[at + i] = d * z * inverse_std_[i];
      d_log_std_[i] += static_cast<double>(d * (z * z - 1.0f) + d_entropy[at + i]);
    }
  }
  float* out = gradients[ActionHead::kLogStd].data_ptr<float>();
  for (std::size_t i = 0; i < width; ++i) out[i] = static_cast<float>(d_log_std_[i]);
}

void ActionHeadPass::forward_categorical(const float* logits, const float* action, const float* mask) {
  const auto choices = static_cast<std::size_t>(head_.choices());
  float* logp = logp_.data_ptr<float>();
  float* entropy = entropy_.data_ptr<float>();
  for (std::size_t cell = 0; cell < chosen_.size(); ++cell) {
    float* out = saved_.data() + cell * choices;
    log_softmax_choices(logits + cell * choices, mask == nullptr ? nullptr : mask + cell * choices,
                        std::span(out, choices));
    float* probability = probability_.data() + cell * choices;
    float disorder = 0;
    for (std::size_t c = 0; c < choices; ++c) {
      probability[c] = std::exp(out[c]);
      disorder -= probability[c] * out[c];
    }
    chosen_[cell] = static_cast<std::int64_t>(action[cell]);
    TORCH_CHECK(chosen_[cell] >= 0 && chosen_[cell] < head_.choices(), "action ", action[cell], " is none of ", choices,
                " choices");
    const float chosen = out[chosen_[cell]];
    logp[cell] = mask != nullptr && chosen < kMaskedLogit / 2 ? -std::numeric_limits<float>::infinity() : chosen;
    entropy[cell] = disorder;
  }
}

void ActionHeadPass::backward_categorical(const float* d_logp, const float* d_entropy) {
  // d logp_a / d logit_c = [c = a] - p_c;  d entropy / d logit_c = -p_c (log p_c + entropy)
  const auto choices = static_cast<std::size_t>(head_.choices());
  const float* entropy = entropy_.const_data_ptr<float>();
  float* d_logits = d_outputs_.data_ptr<float>();
  for (std::size_t cell = 0; cell < chosen_.size(); ++cell) {
    const float* log_probs = saved_.data() + cell * choices;
    const float* probability = probability_.data() + cell * choices;
    float* out = d_logits + cell * choices;
    for (std::size_t c = 0; c < choices; ++c) {
      out[c] = -probability[c] * (d_logp[cell] + d_entropy[cell] * (log_probs[c] + entropy[cell]));
    }
    out[chosen_[cell]] += d_logp[cell];
  }
}

}  // namespace troupe::model
