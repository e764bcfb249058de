#include "model/policy/squashed_rows.h"

#include <ATen/ATen.h>

#include <cmath>

#include "model/policy/gaussian.h"

namespace troupe::model {
namespace {

constexpr auto kEpsilon = static_cast<float>(kTanhEpsilon);

std::vector<float> numbers_of(const at::Tensor& x) {
  const at::Tensor plain = x.to(at::kFloat).contiguous();
  return {plain.const_data_ptr<float>(), plain.const_data_ptr<float>() + plain.numel()};
}

}  // namespace

SquashedRows::SquashedRows(std::int64_t rows, const ActionRange& range, double log_std_min, double log_std_max)
    : width_(static_cast<std::size_t>(range.scale.numel())),
      scale_(numbers_of(range.scale)),
      bias_(numbers_of(range.bias)),
      log_std_min_(static_cast<float>(log_std_min)),
      half_range_(static_cast<float>(0.5 * (log_std_max - log_std_min))),
      logp_(static_cast<std::size_t>(rows)) {
  for (auto* saved : {&squashed_, &std_, &raw_slope_}) saved->resize(logp_.size() * width_);
}

void SquashedRows::forward(const float* outputs, const float* noise, float* action, std::int64_t stride) {
  for (std::size_t row = 0; row < logp_.size(); ++row, outputs += 2 * width_, action += stride) {
    float logp = 0;
    for (std::size_t i = 0; i < width_; ++i) {
      const std::size_t at = row * width_ + i;
      const float raw = std::tanh(outputs[width_ + i]), log_std = log_std_min_ + half_range_ * (raw + 1.0f);
      const float z = noise[at], std = std::exp(log_std), t = std::tanh(outputs[i] + std * z);
      squashed_[at] = t;
      std_[at] = std;
      raw_slope_[at] = half_range_ * (1.0f - raw * raw);
      action[i] = scale_[i] * t + bias_[i];
      logp +=
          -0.5f * z * z - log_std - static_cast<float>(kHalfLogTwoPi) - std::log(scale_[i] * (1.0f - t * t) + kEpsilon);
    }
    logp_[row] = logp;
  }
}

void SquashedRows::mode(const float* outputs, float* action, std::int64_t stride) const {
  for (std::size_t row = 0; row < logp_.size(); ++row, outputs += 2 * width_, action += stride)
    for (std::size_t i = 0; i < width_; ++i) action[i] = scale_[i] * std::tanh(outputs[i]) + bias_[i];
}

void SquashedRows::backward(const float* noise, const float* d_action, std::int64_t stride, float d_logp,
                            float* d_outputs) const {
  for (std::size_t row = 0; row < logp_.size(); ++row, d_outputs += 2 * width_, d_action += stride) {
    for (std::size_t i = 0; i < width_; ++i) {
      const std::size_t at = row * width_ + i;
      const float t = squashed_[at], slope = scale_[i] * (1.0f - t * t);
      const float d_u = d_action[i] * slope + 2.0f * d_logp * t * slope / (slope + kEpsilon);
      d_outputs[i] = d_u;
      d_outputs[width_ + i] = (d_u * std_[at] * noise[at] - d_logp) * raw_slope_[at];
    }
  }
}

}  // namespace troupe::model
