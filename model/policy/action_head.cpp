#include "model/policy/action_head.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "base/random.h"
#include "model/loss/flow_matching.h"
#include "model/policy/categorical.h"
#include "model/policy/gaussian.h"

namespace troupe::model {

Result<ActionHead> ActionHead::make(const PolicyConfig& policy, const PolicyShape& shape) {
  const bool is_discrete = shape.choices > 0;
  const std::string& name = policy.distribution;
  if (name == "squashed_gaussian") {
    return Error{
        Errc::invalid_argument,
        "policy.distribution is squashed_gaussian, which sac trains; this algorithm takes gaussian or categorical"};
  }
  if (name != "auto" && (name == "categorical") != is_discrete) {
    return Error{Errc::invalid_argument,
                 fmt::format("policy.distribution is {}; the environment's actions are {}: use {} or auto", name,
                             is_discrete ? fmt::format("{} choices", shape.choices) : "continuous",
                             is_discrete ? "categorical" : "gaussian")};
  }
  const bool is_masked = shape.mask_dim > 0;
  if (is_masked && shape.chunk != 1) {
    return Error{
        Errc::invalid_argument,
        fmt::format("env.chunk is {}; the environment says which of its actions are allowed at an observation, "
                    "and so for one action: 1",
                    shape.chunk)};
  }
  if (is_discrete) return ActionHead(Kind::categorical, shape.chunk, shape.choices, 0, is_masked);
  return ActionHead(Kind::gaussian, shape.chunk, shape.action_dim, policy.init_log_std, false);
}

std::vector<ParamSpec> ActionHead::params() const {
  if (kind_ == Kind::categorical) return {};
  return {{kLogStd, {outputs()}, {Init::Kind::constant, init_log_std_}}};
}

ActionDensity ActionHead::density(const ParamView& view, const at::Tensor& outputs, const at::Tensor& action,
                                  const at::Tensor& mask) const {
  if (kind_ == Kind::categorical) {
    const auto log_probs = categorical_log_probs(is_masked_ ? masked_logits(outputs, mask) : outputs, per_action_);
    return {categorical_logp(log_probs, action, is_masked_), categorical_entropy(log_probs)};
  }
  const auto log_std = view[kLogStd].to(at::kFloat);
  return {gaussian_logp(outputs, log_std, action), gaussian_entropy(log_std).expand_as(outputs)};
}

ActionHead::Sample ActionHead::sample(const ParamView& view, const at::Tensor& outputs, std::uint64_t seed,
                                      std::span<const std::uint64_t> keys, bool deterministic,
                                      const at::Tensor& mask) const {
  const at::NoGradGuard no_grad;
  TORCH_CHECK(deterministic || static_cast<std::int64_t>(keys.size()) == outputs.size(0),
              "as many keys as rows: ", keys.size(), " and ", outputs.size(0));
  if (kind_ == Kind::categorical) return sample_choices(outputs, seed, keys, deterministic, mask);
  const auto log_std = view[kLogStd].to(at::kFloat);
  const auto action =
      deterministic
          ? outputs.clone()
          : gaussian_sample(outputs, log_std, keyed_noise(seed, rng_stream::policy_action, keys, {this->outputs()}));
  return {action, gaussian_logp(outputs, log_std, action)};
}

ActionHead::Sample ActionHead::sample_choices(const at::Tensor& outputs, std::uint64_t seed,
                                              std::span<const std::uint64_t> keys, bool deterministic,
                                              const at::Tensor& mask) const {
  // one row after the other, since batches are small and a tensor operation costs more than all their rows
  const std::int64_t rows = outputs.size(0);
  const at::Tensor logits = outputs.to(at::kFloat).contiguous();
  const at::Tensor allowed = is_masked_ ? mask.to(at::kFloat).contiguous() : at::Tensor();
  TORCH_CHECK(!is_masked_ || allowed.sizes() == logits.sizes(), "a mask has a number for each of ", per_action_,
              " choices");
  Sample sample{at::empty({rows, chunk_}, at::kFloat), at::empty({rows, chunk_}, at::kFloat)};
  const float* from = logits.const_data_ptr<float>();
  const float* row_mask = is_masked_ ? allowed.const_data_ptr<float>() : nullptr;
  float* action = sample.action.data_ptr<float>();
  float* logp = sample.logp.data_ptr<float>();
  std::vector<float> log_probs(static_cast<std::size_t>(per_action_));
  for (std::int64_t row = 0; row < rows; ++row) {
    CounterRng rng(seed, rng_stream::policy_action, deterministic ? 0 : keys[static_cast<std::size_t>(row)]);
    for (std::int64_t k = 0; k < chunk_; ++k, from += per_action_) {
      log_softmax_choices(from, row_mask, log_probs);
      const std::int64_t choice = deterministic ? likeliest_choice(log_probs) : drawn_choice(log_probs, rng.uniform());
      *action++ = static_cast<float>(choice);
      *logp++ = log_probs[static_cast<std::size_t>(choice)];
    }
    if (row_mask != nullptr) row_mask += per_action_;
  }
  return sample;
}

}  // namespace troupe::model
