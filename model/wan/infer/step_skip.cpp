#include "model/wan/infer/step_skip.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <array>
#include <bitset>
#include <initializer_list>
#include <optional>
#include <utility>

#include "model/wan/infer/infer_options.h"

namespace troupe::model {
namespace {

using Mask = std::bitset<static_cast<std::size_t>(kSkipMaskSteps)>;

Mask mask_of(std::initializer_list<std::size_t> steps) {
  Mask mask;
  for (const auto step : steps) mask.set(step);
  return mask;
}

/// The steps that a fixed choice evaluates; no mask for none and dynamic.
std::optional<Mask> fixed_mask(StepSkip skip) {
  switch (skip) {
    case StepSkip::steps_5:
      return mask_of({0, 1, 2, 7, 12});
    case StepSkip::steps_6:
      return mask_of({0, 1, 5, 10, 14, 15});
    case StepSkip::steps_7:
      return mask_of({0, 1, 2, 6, 10, 14, 15});
    case StepSkip::steps_8:
      return mask_of({0, 1, 2, 6, 10, 13, 14, 15});
    case StepSkip::none:
    case StepSkip::dynamic:
      break;
  }
  return std::nullopt;
}

}  // namespace

Result<StepSkip> to_step_skip(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, StepSkip>, 6> kNames = {{{"none", StepSkip::none},
                                                                            {"5", StepSkip::steps_5},
                                                                            {"6", StepSkip::steps_6},
                                                                            {"7", StepSkip::steps_7},
                                                                            {"8", StepSkip::steps_8},
                                                                            {"dynamic", StepSkip::dynamic}}};
  for (const auto& [known, skip] : kNames) {
    if (known == name) return skip;
  }
  return Error{Errc::invalid_argument,
               fmt::format("step skipping is \"{}\"; want none, 5, 6, 7, 8 (evaluated steps of 16) or dynamic", name)};
}

bool StepSkipRule::evaluates() {
  const auto step = step_++;
  if (skip_ == StepSkip::dynamic) return decide_dynamically();
  const auto mask = fixed_mask(skip_);
  if (!mask) return true;
  TORCH_CHECK(step < kSkipMaskSteps, "step ", step, " lies behind the skip mask, which is made for ", kSkipMaskSteps,
              " steps");
  return mask->test(static_cast<std::size_t>(step));
}

bool StepSkipRule::decide_dynamically() {
  if (!before_.defined()) return true;
  if (countdown_ > 0) return --countdown_ == 0;
  const auto similarity = at::cosine_similarity(last_, before_, 1).mean().item<float>();
  if (similarity > 0.95F) {
    countdown_ = 4;
  } else if (similarity > 0.93F) {
    countdown_ = 2;
  }
  return countdown_ == 0;
}

void StepSkipRule::record(const at::Tensor& velocity) {
  if (skip_ != StepSkip::dynamic) return;
  before_ = last_;
  last_ = velocity.flatten(1).to(at::kFloat);
}

Result<void> check_options(const InferOptions& options) {
  const auto refuse = [](std::string text) { return Error{Errc::invalid_argument, std::move(text)}; };
  if (options.steps < 1 || options.steps > 1000) {
    return refuse(fmt::format("{} denoising steps, want 1 to 1000", options.steps));
  }
  if (!(options.shift > 0)) return refuse(fmt::format("shift is {}, want a number above 0", options.shift));
  if (!(options.cfg_scale >= 0)) return refuse(fmt::format("cfg_scale is {}, want 0 or more", options.cfg_scale));
  if (!(options.video_final_noise >= 0 && options.video_final_noise < 1)) {
    return refuse(fmt::format("video_final_noise is {}, want 0 to below 1", options.video_final_noise));
  }
  if (fixed_mask(options.skip) && options.steps != kSkipMaskSteps) {
    return refuse(fmt::format("the fixed step masks are made for {} denoising steps; steps is {}: use {} or dynamic",
                              kSkipMaskSteps, options.steps, kSkipMaskSteps));
  }
  return {};
}

}  // namespace troupe::model
