#include "model/policy/action_head.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "base/random.h"
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
  const std::int64_t rows = outputs.size(0);
  const at::Tensor plain = outputs.to(at::kFloat).contiguous();
  const at::Tensor allowed = is_masked_ ? mask.to(at::kFloat).contiguous() : at::Tensor();
  TORCH_CHECK(plain.size(1) == this->outputs(), "a row has ", this->outputs(), " outputs, got ", plain.size(1));
  TORCH_CHECK(!is_masked_ || allowed.sizes() == plain.sizes(), "a mask has a number for each of ", per_action_,
              " choices");
  Sample sample{at::empty({rows, action_width()}, at::kFloat), at::empty({rows, logp_width()}, at::kFloat)};
  draw(view, rows,
       {.outputs = plain.const_data_ptr<float>(),
        .mask = is_masked_ ? allowed.const_data_ptr<float>() : nullptr,
        .mask_stride = per_action_,
        .seed = seed,
        .keys = keys,
        .deterministic = deterministic,
        .action = sample.action.data_ptr<float>(),
        .logp = sample.logp.data_ptr<float>()});
  return sample;
}

void ActionHead::draw(const ParamView& view, std::int64_t rows, const Draw& draw) const {
  TORCH_CHECK(draw.deterministic || static_cast<std::int64_t>(draw.keys.size()) == rows,
              "as many keys as rows: ", draw.keys.size(), " and ", rows);
  kind_ == Kind::categorical ? draw_choices(rows, draw) : draw_gaussians(view, rows, draw);
}

void ActionHead::draw_choices(std::int64_t rows, const Draw& draw) const {
  const float* outputs = draw.outputs;
  float *action = draw.action, *logp = draw.logp;
  std::vector<float> log_probs(static_cast<std::size_t>(per_action_));
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* const mask = is_masked_ ? draw.mask + row * draw.mask_stride : nullptr;
    CounterRng rng(draw.seed, rng_stream::policy_action,
                   draw.deterministic ? 0 : draw.keys[static_cast<std::size_t>(row)]);
    for (std::int64_t k = 0; k < chunk_; ++k, outputs += per_action_) {
      log_softmax_choices(outputs, mask, log_probs);
      const std::int64_t choice =
          draw.deterministic ? likeliest_choice(log_probs) : drawn_choice(log_probs, rng.uniform());
      *action++ = static_cast<float>(choice);
      *logp++ = log_probs[static_cast<std::size_t>(choice)];
    }
  }
}

void ActionHead::draw_gaussians(const ParamView& view, std::int64_t rows, const Draw& draw) const {
  const at::Tensor log_std = view[kLogStd].detach().to(at::kFloat).contiguous();
  const auto width = static_cast<std::size_t>(outputs());
  std::vector<float> noise(width);
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
    if (!draw.deterministic) {
      CounterRng rng(draw.seed, rng_stream::policy_action, draw.keys[row]);
      for (float& number : noise) number = rng.normal();
    }
    draw_gaussian({draw.outputs + row * width, width}, log_std.const_data_ptr<float>(),
                  draw.deterministic ? nullptr : noise.data(), draw.action + row * width, draw.logp + row * width);
  }
}

}  // namespace troupe::model
