#include "model/policy/flow_sampler.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace troupe::model {
namespace {

/// index_B [B] as [B,1,...], to choose between rows of x.
at::Tensor like_rows(const at::Tensor& value_B, const at::Tensor& x) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(x.dim()), 1);
  shape[0] = x.size(0);
  return value_B.view(shape);
}

at::Tensor times_of(const at::Tensor& x, double time) { return at::full({x.size(0)}, time, x.options()); }

/// Means and widths of one step for all rows of x.
struct StepMoments {
  at::Tensor mean, std;
};

/// Step `i` of every row with the sampling's method, or an ODE step where `draws` [B,1,...] is false. Undefined: all
/// draw.
StepMoments step_moments(const FlowSampling& sampling, std::int64_t i, const at::Tensor& x,
                         const FlowPrediction& predicted, const at::Tensor& draws) {
  const double time = sampling.times[static_cast<std::size_t>(i)];
  const auto drawn = flow_weights(sampling.method, sampling.times, i, sampling.noise_level);
  const auto mean = flow_step_mean(x, predicted.velocity, time, drawn);
  const auto std = sampling.method == FlowMethod::noise ? predicted.std.expand_as(x)
                                                        : at::full({}, drawn.std, x.options()).expand_as(x);
  if (!draws.defined()) return {mean, std};
  const auto plain = flow_weights(FlowMethod::ode, sampling.times, i, sampling.noise_level);
  return {at::where(draws, mean, flow_step_mean(x, predicted.velocity, time, plain)),
          at::where(draws, std, at::zeros({}, x.options()))};
}

/// Log-probability of a standard normal: the first of a joint chain's terms.
at::Tensor initial_logp(const at::Tensor& x, bool safe) {
  return flow_step_logp(x, at::zeros({}, x.options()), at::ones({}, x.options()), safe);
}

at::Tensor reduce_joint(const std::vector<at::Tensor>& transitions, const at::Tensor& initial,
                        FlowSampling::Reduce reduce) {
  auto steps = at::stack(transitions, 1);
  if (reduce == FlowSampling::Reduce::per_step) return steps;
  const auto sum = steps.sum(1) + initial;
  return reduce == FlowSampling::Reduce::sum ? sum : sum / static_cast<double>(transitions.size() + 1);
}

FlowDensity joint_density(const FlowNetwork& network, const at::Tensor& chain, const FlowSampling& sampling) {
  std::vector<at::Tensor> logps, entropies, values;
  for (std::int64_t i = 0; i < sampling.steps(); ++i) {
    const auto x = chain.select(1, i);
    const auto predicted = network(x, times_of(x, sampling.times[static_cast<std::size_t>(i)]));
    const auto [mean, std] = step_moments(sampling, i, x, predicted, {});
    logps.push_back(flow_step_logp(chain.select(1, i + 1), mean, std, sampling.safe));
    if (sampling.method == FlowMethod::noise) entropies.push_back(flow_step_entropy(std));
    if (predicted.value.defined()) values.push_back(predicted.value);
  }
  const auto start = chain.select(1, 0);
  FlowDensity density{
      reduce_joint(logps, initial_logp(start, sampling.safe), sampling.reduce), at::zeros_like(start), {}};
  if (!entropies.empty()) {
    entropies.push_back(flow_step_entropy(at::ones_like(start)));
    density.entropy = at::stack(entropies, 1).mean(1);
  }
  if (!values.empty()) density.value = at::stack(values, 1).mean(1);
  return density;
}

}  // namespace

FlowChain sample_flow_chain(const FlowNetwork& network, const at::Tensor& initial, const at::Tensor& noise,
                            const at::Tensor& index_B, const FlowSampling& sampling) {
  const at::NoGradGuard no_grad;
  const auto steps = sampling.steps();
  std::vector<at::Tensor> states{initial}, logps, values;
  for (std::int64_t i = 0; i < steps; ++i) {
    const auto x = states.back();
    const auto predicted = network(x, times_of(x, sampling.times[static_cast<std::size_t>(i)]));
    at::Tensor draws;
    if (!sampling.joint) {
      draws = index_B.defined() ? like_rows(index_B == i, x) : at::zeros({}, x.options().dtype(at::kBool));
    }
    const auto [mean, std] = step_moments(sampling, i, x, predicted, draws);
    const auto next = noise.defined() ? mean + noise[i] * std : mean;
    logps.push_back(flow_step_logp(next, mean, std, sampling.safe));
    states.push_back(next);
    if (predicted.value.defined()) values.push_back(predicted.value);
  }
  FlowChain result{at::stack(states, 1), {}, {}};
  // without joint only the step that drew has a density
  result.logp = sampling.joint ? reduce_joint(logps, initial_logp(initial, sampling.safe), sampling.reduce)
                               : at::stack(logps, 1).sum(1);
  if (!values.empty()) result.value = at::stack(values, 1).mean(1);
  return result;
}

FlowDensity flow_chain_density(const FlowNetwork& network, const at::Tensor& chain, const at::Tensor& index_B,
                               const FlowSampling& sampling) {
  TORCH_CHECK(chain.dim() >= 3 && chain.size(1) == sampling.steps() + 1, "a chain of ", sampling.steps(), " steps has ",
              sampling.steps() + 1, " states, not ", chain.sizes());
  if (sampling.joint) return joint_density(network, chain, sampling);
  TORCH_CHECK(index_B.dim() == 1 && index_B.size(0) == chain.size(0), "indices of ", index_B.sizes(), " for ",
              chain.size(0), " rows");

  const auto rows = at::arange(chain.size(0), at::TensorOptions().dtype(at::kLong));
  const auto step = index_B.clamp_min(0);
  const auto x = chain.index({rows, step}), next = chain.index({rows, step + 1});
  const auto weights = flow_row_weights(sampling.method, sampling.times, sampling.noise_level, step, x);
  const auto predicted = network(x, weights.time.view({-1}));
  const auto mean = flow_step_mean(x, predicted.velocity, weights);
  auto std = sampling.method == FlowMethod::noise ? predicted.std : weights.std.expand_as(x);
  std = at::where(like_rows(index_B >= 0, x), std, at::zeros({}, x.options()));
  const auto entropy = sampling.method == FlowMethod::noise ? flow_step_entropy(std) : at::zeros_like(x);
  return {flow_step_logp(next, mean, std, sampling.safe), entropy, predicted.value};
}

}  // namespace troupe::model
