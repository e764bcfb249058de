#include "model/policy/squashed_gaussian.h"

#include <ATen/ATen.h>

#include <numbers>

#include "model/policy/gaussian.h"

namespace troupe::model {

ActionRange make_action_range(const std::vector<float>& low, const std::vector<float>& high, std::int64_t chunk) {
  TORCH_CHECK(low.size() == high.size(), "as many lower bounds as upper ones: ", low.size(), " and ", high.size());
  const auto bounds = [chunk](const std::vector<float>& values) {
    return at::tensor(values, at::kFloat).repeat({chunk});
  };
  const auto lower = bounds(low), upper = bounds(high);
  return {(upper - lower) / 2, (upper + lower) / 2};
}

at::Tensor squash_log_std(const at::Tensor& raw, double lo, double hi) {
  return lo + 0.5 * (hi - lo) * (raw.tanh() + 1);
}

at::Tensor squash_log_slope(const at::Tensor& u, const ActionRange& range, TanhCorrection correction, double epsilon) {
  if (correction == TanhCorrection::stable) {
    return range.scale.log() + 2 * (std::numbers::ln2 - u - at::softplus(-2 * u));
  }
  return (range.scale * (1 - u.tanh().square()) + epsilon).log();
}

SquashedAction sample_squashed(const at::Tensor& mean, const at::Tensor& log_std, const at::Tensor& noise,
                               const ActionRange& range, TanhCorrection correction, double epsilon) {
  const auto u = mean + log_std.exp() * noise;
  // the noise itself is the standardised sample: log N(u) needs no division, and no gradient through (u - mean) / std
  const auto base = -0.5 * noise.square() - log_std - kHalfLogTwoPi;
  return {range.scale * u.tanh() + range.bias, base - squash_log_slope(u, range, correction, epsilon), u};
}

at::Tensor squashed_mode(const at::Tensor& mean, const ActionRange& range) {
  return range.scale * mean.tanh() + range.bias;
}

}  // namespace troupe::model
