#include <ATen/ATen.h>

#include <cmath>

#include "base/namespaces.h"
#include "model/policy/flow_sampler.h"
#include "tests/model/golden_rl/cases.h"
#include "tests/model/golden_rl/golden_layers.h"
#include "tests/support/visible.h"

namespace troupe::testing {
namespace {

// golden/rl/README.md: one sentence of tolerance per kind.
constexpr RlTolerance kStep{1e-6, 0}, kChain{1e-5, 0}, kDensity{1e-4, 1e-5};

/// "flow_sde" is the method sde.
FlowMethod method_of(const std::string& name) {
  return enum_value<FlowMethod>(name.substr(name.find('_') + 1)).value();
}

void judge_steps(const RlCase& golden) {
  const auto& x = golden.in("x_t");
  const auto& velocity = golden.in("v_t");
  for (const auto& variant : golden.variants()) {
    variant.expect_options({"method", "N", "noise_level"});
    const auto method = method_of(variant.config.at("method").get<std::string>());
    const auto times = flow_times(variant.config.at("N").get<std::int64_t>());
    const double level = variant.get("noise_level", 0.0);
    std::vector<at::Tensor> means, stds;
    for (std::size_t i = 0; i + 1 < times.size(); ++i) {
      const auto weights = flow_weights(method, times, static_cast<std::int64_t>(i), level);
      means.push_back(flow_step_mean(x, velocity, times[i], weights));
      stds.push_back(at::full({}, weights.std, x.options()));
    }
    variant.expect("mean", at::stack(means), kStep);
    variant.expect("std", at::stack(stds), kStep);
    // the same steps with one index per row, as the learner takes them
    for (std::int64_t i = 0; i + 1 < static_cast<std::int64_t>(times.size()); ++i) {
      const auto rows = flow_row_weights(method, times, level, at::full({x.size(0)}, i, at::kLong), x);
      expect_close(flow_step_mean(x, velocity, rows), variant.at("mean")[i], kStep, variant.name + " row mean");
    }
  }
}

/// The tiny network of the case: its weights as leaves, by their names.
class FlowStandIn {
 public:
  FlowStandIn(const RlCase& golden, const RlVariant& variant) : golden_(golden), variant_(variant) {
    const bool after_vlm = variant.get("value_after_vlm", false);
    for (const auto& [name, tensor] : golden.inputs()) {
      if (name.rfind("w.", 0) == 0 && !(after_vlm && name.rfind("w.value_head.", 0) == 0))
        weights_[name.substr(2)] = leaf(tensor);
      if (name.rfind("vlm_w.", 0) == 0 && after_vlm) weights_[name.substr(6)] = leaf(tensor);
    }
    const auto range = variant.get<std::vector<double>>("noise_logvar_range", {0.08, 0.16});
    low_ = range.at(0), high_ = range.at(1);
  }

  FlowPrediction operator()(const at::Tensor& x, const at::Tensor& t) const {
    const auto state = at::matmul(golden_.in("state"), weight("w_s.weight").t()).unsqueeze(1);
    const auto h = at::tanh(at::matmul(x, weight("w_x.weight").t()) + weight("w_x.bias") + state +
                            weight("w_t") * t.view({-1, 1, 1}));
    const auto suffix = h + at::matmul(weight("w_mix"), h);
    const auto velocity = at::matmul(suffix, weight("action_out_proj.weight").t()) + weight("action_out_proj.bias");
    at::Tensor std;
    if (method_of(variant_.get<std::string>("noise_method", "flow_sde")) == FlowMethod::noise) {
      std = flow_noise_std(noise_head(suffix), low_, high_);
    }
    return {velocity, std, value(suffix)};
  }

  const TensorMap& weights() const { return weights_; }

 private:
  const at::Tensor& weight(const std::string& name) const { return weights_.at(name); }

  at::Tensor value(const at::Tensor& suffix) const {
    auto pooled = suffix.mean(1);
    if (variant_.get("chunk_critic_input", false))
      pooled = suffix.narrow(1, 0, golden_.config().at("K").get<std::int64_t>()).mean(1);
    if (variant_.get("value_after_vlm", false)) pooled = golden_.in("prefix").mean(1);
    if (variant_.get("detach_critic_input", false)) pooled = pooled.detach();
    return golden_layers(weights_, "value_head.mlp.", pooled, false, golden_relu).squeeze(-1);
  }

  /// "<prefix>.<i>.linear_1": linear layers with tanh between them.
  at::Tensor noise_head(at::Tensor y) const {
    const std::string prefix = "noise_head.mlp_logvar.moduleList.";
    for (int layer = 0; weights_.count(prefix + std::to_string(layer) + ".linear_1.weight") > 0; ++layer) {
      const auto name = prefix + std::to_string(layer) + ".linear_1";
      y = at::linear(layer == 0 ? y : y.tanh(), weight(name + ".weight"), weight(name + ".bias"));
    }
    return y;
  }

  const RlCase& golden_;
  const RlVariant& variant_;
  TensorMap weights_;
  double low_ = 0, high_ = 0;
};

/// The executed part of a chunk: [B,H,D] -> [B,K,A].
at::Tensor executed(const RlCase& golden, const at::Tensor& chunk) {
  return chunk.narrow(-2, 0, golden.config().at("K").get<std::int64_t>())
      .narrow(-1, 0, golden.config().at("A").get<std::int64_t>());
}

FlowSampling sampling_of(const RlVariant& variant) {
  FlowSampling sampling;
  sampling.method = method_of(variant.get<std::string>("noise_method", "flow_sde"));
  sampling.times = flow_times(variant.get<std::int64_t>("num_steps", 4));
  sampling.noise_level = variant.get("noise_level", 0.5);
  if (variant.get("noise_anneal", false)) {
    const auto params = variant.config.at("noise_params").get<std::vector<double>>();
    FlowPolicyConfig annealed;
    annealed.noise_level = params.at(0);
    annealed.noise_level_end = params.at(1);
    annealed.noise_anneal_steps = std::llround(params.at(2));
    sampling.noise_level = flow_noise_level(annealed, variant.config.at("step").get<std::int64_t>());
  }
  sampling.joint = variant.get("joint_logprob", false);
  sampling.safe = variant.get("safe_get_logprob", false);
  return sampling;
}

/// Mean and width of `method` at every state of the recorded chain, whichever steps drew.
void judge_moments(const RlVariant& variant, const FlowStandIn& network, FlowMethod method,
                   const FlowSampling& sampling) {
  std::vector<at::Tensor> means, stds;
  for (std::int64_t i = 0; i < sampling.steps(); ++i) {
    const auto x = variant.at("chains").select(1, i);
    const double time = sampling.times[static_cast<std::size_t>(i)];
    const auto predicted = network(x, at::full({x.size(0)}, time));
    const auto weights = flow_weights(method, sampling.times, i, sampling.noise_level);
    means.push_back(flow_step_mean(x, predicted.velocity, time, weights));
    stds.push_back(method == FlowMethod::noise ? predicted.std : at::full_like(x, weights.std));
  }
  variant.expect("step_mean", at::stack(means, 1), kChain);
  variant.expect("step_std", at::stack(stds, 1), kChain);
}

/// The rollout side; returns the index of the step that counts for each row, undefined in evaluation.
at::Tensor judge_rollout(const RlCase& golden, const RlVariant& variant, const FlowStandIn& network,
                         FlowSampling sampling) {
  const bool trains = variant.get<std::string>("mode", "train") == "train", every_step = variant.get("is_nft", false);
  at::Tensor index;
  if (trains) index = variant.at("denoise_inds").select(1, 0).contiguous();
  if (every_step) {
    sampling.joint = true;
    sampling.reduce = FlowSampling::Reduce::per_step;
  }
  if (!trains) sampling.joint = false;
  const auto noise = golden.in("noise_steps").narrow(0, 0, sampling.steps());
  const auto chain = sample_flow_chain(network, golden.in("noise_initial"), noise, index, sampling);
  variant.expect("chains", chain.chain, kChain);
  variant.expect("actions", chain.action(), kChain);
  judge_moments(variant, network, trains ? sampling.method : FlowMethod::ode, sampling);
  const auto logp = every_step ? chain.logp.select(1, 0) : chain.logp;
  variant.expect("prev_logprobs", executed(golden, logp), kDensity);
  variant.expect("prev_values", chain.value.unsqueeze(1), kDensity);
  if (!every_step) return index;

  const auto rows = at::arange(chain.chain.size(0), at::kLong);
  const auto& recorded = variant.at("nft_step_index");
  const auto times = at::tensor(sampling.times, at::kDouble).to(at::kFloat).index_select(0, recorded);
  const auto x = chain.chain.index({rows, recorded});
  variant.expect("nft_xcur", x, kChain);
  variant.expect("nft_xnext", chain.chain.index({rows, recorded + 1}), kChain);
  variant.expect("nft_v", network(x, times).velocity, kChain);
  variant.expect("nft_x0", chain.action(), kChain);
  variant.expect("nft_noise_level", at::full({x.size(0)}, sampling.noise_level), kChain);
  return index;
}

void judge_learner(const RlCase& golden, const RlVariant& variant, const FlowStandIn& network,
                   const FlowSampling& sampling, const at::Tensor& index) {
  const auto density = flow_chain_density(network, variant.at("chains"), index, sampling);
  const auto logp = executed(golden, density.logp);
  const auto entropy = executed(golden, density.entropy).flatten(1).mean(1, /*keepdim=*/true);
  variant.expect("logprobs", logp, kDensity);
  variant.expect("values", density.value, kDensity);
  variant.expect("entropy", entropy, kDensity);
  if (variant.scalars.contains("recompute_gap") && variant.scalars.at("recompute_gap").is_number()) {
    const double gap = (logp - variant.at("prev_logprobs")).abs().max().item<double>();
    variant.expect("recompute_gap", gap, kDensity);
  }

  auto loss = (logp * golden.in("coef_logprob")).sum() + (density.value * golden.in("coef_value")).sum();
  if (sampling.method == FlowMethod::noise) loss = loss + entropy.sum();
  expect_gradients(loss, network.weights(), variant, "grad.", kGradient);
}

void judge_chain(const RlCase& golden) {
  for (const auto& variant : golden.variants()) {
    variant.expect_options({"noise_method", "mode", "j", "num_steps", "noise_level", "noise_anneal", "noise_params",
                            "step", "safe_get_logprob", "joint_logprob", "chunk_critic_input", "value_after_vlm",
                            "detach_critic_input", "noise_logvar_range", "is_nft", "ignore_last"});
    const FlowStandIn network(golden, variant);
    const auto sampling = sampling_of(variant);
    if (variant.scalars.contains("noise_level")) {
      variant.expect("noise_level", sampling.noise_level, kChain);
    }
    const auto index = judge_rollout(golden, variant, network, sampling);
    if (index.defined() && variant.has("logprobs")) judge_learner(golden, variant, network, sampling, index);
  }
}

}  // namespace

RlHandlers flow_handlers() { return {{"flow_chain", judge_chain}, {"flow_steps", judge_steps}}; }

}  // namespace troupe::testing
