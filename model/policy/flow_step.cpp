#include "model/policy/flow_step.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace troupe::model {
namespace {

constexpr double kLeastLearnedStd = 1e-3;  // floor of flow_noise_std: keeps log-probabilities finite

}  // namespace

std::vector<double> flow_times(std::int64_t steps) {
  TORCH_CHECK(steps >= 1, "a flow needs at least 1 step, not ", steps);
  std::vector<double> times(static_cast<std::size_t>(steps) + 1);
  for (std::int64_t i = 0; i <= steps; ++i) {
    times[static_cast<std::size_t>(i)] = 1.0 - static_cast<double>(i) / static_cast<double>(steps);
  }
  return times;
}

double flow_noise_level(const FlowPolicyConfig& flow, std::int64_t step) {
  if (flow.noise_anneal_steps <= 0) return flow.noise_level;
  const auto done = static_cast<double>(std::clamp<std::int64_t>(step, 0, flow.noise_anneal_steps));
  return flow.noise_level +
         (flow.noise_level_end - flow.noise_level) * done / static_cast<double>(flow.noise_anneal_steps);
}

Result<void> check_drawing_steps(const FlowPolicyConfig& flow) {
  if (flow.joint && flow.ignore_first > 0)
    return invalid_argument("policy.flow.ignore_first is for one step that draws; with policy.flow.joint all do: 0");
  if (flow.drawing_steps() > 0) return {};
  return invalid_argument(fmt::format(
      "policy.flow.ignore_first is {} and policy.flow.ignore_last {}: of policy.flow.denoise_steps {} no step draws",
      flow.ignore_first, flow.ignore_last, flow.denoise_steps));
}

FlowWeights flow_weights(FlowMethod method, const std::vector<double>& times, std::int64_t index, double noise_level) {
  const auto steps = static_cast<std::int64_t>(times.size()) - 1;
  TORCH_CHECK(index >= 0 && index < steps, "step ", index, " of a schedule of ", steps);
  const auto i = static_cast<std::size_t>(index);
  const double t = times[i], next = times[i + 1], delta = t - next;
  if (method == FlowMethod::sde) {
    // at t = 1 sigma would be infinite, at a first level near 1 far too wide; the next time stands in for it
    const double below = index > 0 ? 1.0 - t : 1.0 - times[1];
    const double sigma = noise_level * std::sqrt(t / below);
    return {1.0 - next, next - sigma * sigma * delta / (2.0 * t), std::sqrt(delta) * sigma};
  }
  if (method == FlowMethod::cps) {
    const double angle = std::numbers::pi * noise_level / 2.0;
    return {1.0 - next, next * std::cos(angle), next * std::sin(angle)};
  }
  return {1.0 - next, next, 0.0};
}

FlowRowWeights flow_row_weights(FlowMethod method, const std::vector<double>& times, double noise_level,
                                const at::Tensor& index_B, const at::Tensor& like) {
  const auto steps = static_cast<std::int64_t>(times.size()) - 1;
  const auto table = at::empty({4, steps}, at::kDouble);
  auto at_step = table.accessor<double, 2>();
  for (std::int64_t i = 0; i < steps; ++i) {
    const auto w = flow_weights(method, times, i, noise_level);
    at_step[0][i] = times[static_cast<std::size_t>(i)];
    at_step[1][i] = w.clean;
    at_step[2][i] = w.noisy;
    at_step[3][i] = w.std;
  }
  std::vector<std::int64_t> shape(static_cast<std::size_t>(like.dim()), 1);
  shape[0] = index_B.size(0);
  const auto rows = table.index_select(1, index_B).to(like.scalar_type());
  return {rows[0].view(shape), rows[1].view(shape), rows[2].view(shape), rows[3].view(shape)};
}

// Both forms group the terms as clean * x0 + noisy * x1, so that a mixed and an unmixed chain agree to the last bits
// but one.
at::Tensor flow_step_mean(const at::Tensor& x, const at::Tensor& velocity, const FlowRowWeights& w) {
  return w.clean * (x - w.time * velocity) + w.noisy * (x + (1.0 - w.time) * velocity);
}

at::Tensor flow_step_mean(const at::Tensor& x, const at::Tensor& velocity, double time, const FlowWeights& w) {
  return w.clean * (x - time * velocity) + w.noisy * (x + (1.0 - time) * velocity);
}

at::Tensor flow_step_logp(const at::Tensor& x, const at::Tensor& mean, const at::Tensor& std, bool safe) {
  const auto drawn = std >= kDeterministicStd;
  const auto zero = at::zeros({}, x.options());
  const auto distance = x - mean;
  if (safe) return at::where(drawn, -distance.square(), zero);
  // a width of one where there is none keeps 0/0 out of the gradient of what where() leaves out
  const auto width = at::where(drawn, std, at::ones({}, std.options()));
  const auto logp = -0.5 * (distance / width).square() - width.log() - 0.5 * std::log(2.0 * std::numbers::pi);
  return at::where(drawn, logp, zero);
}

at::Tensor flow_step_entropy(const at::Tensor& std) {
  const auto drawn = std >= kDeterministicStd;
  const auto width = at::where(drawn, std, at::ones({}, std.options()));
  const auto entropy = width.log() + 0.5 * std::log(2.0 * std::numbers::pi * std::numbers::e);
  return at::where(drawn, entropy, at::zeros({}, std.options()));
}

at::Tensor flow_noise_std(const at::Tensor& u, double lo, double hi) {
  const double low = 2.0 * std::log(lo), high = 2.0 * std::log(hi);
  const auto logvar = low + (high - low) * 0.5 * (u.tanh() + 1.0);
  return (0.5 * logvar).exp().clamp_min(kLeastLearnedStd);
}

}  // namespace troupe::model
