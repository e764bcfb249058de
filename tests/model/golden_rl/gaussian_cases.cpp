#include <ATen/ATen.h>

#include "base/namespaces.h"
#include "model/policy/gaussian.h"
#include "model/policy/squashed_gaussian.h"
#include "tests/model/golden_rl/cases.h"
#include "tests/model/golden_rl/golden_layers.h"
#include "tests/support/visible.h"

namespace troupe::testing {
namespace {

// golden/rl/README.md: 1e-5 abs and rel; squashed log-probs 1e-4 where 1 - tanh^2 < 1e-3.
constexpr RlTolerance kSteep{1e-4, 1e-5};

at::Tensor linear(const TensorMap& w, const std::string& name, const at::Tensor& x) {
  return at::linear(x, w.at(name + ".weight"), w.at(name + ".bias"));
}

/// Log-probabilities whose slope 1 - tanh(u)^2 is tiny may differ more.
void expect_squashed(const at::Tensor& got, const at::Tensor& want, const at::Tensor& u, const std::string& what) {
  const auto steep = (1 - u.detach().to(at::kDouble).tanh().square()) < 1e-3;
  const auto zero = at::zeros({}, got.options());
  expect_close(at::where(steep, zero, got.detach()), at::where(steep, zero, want), kClose, what);
  expect_close(at::where(steep, got.detach(), zero), at::where(steep, want, zero), kSteep, what + " where steep");
}

at::Tensor drawn(const at::Tensor& mean, const at::Tensor& log_std, const at::Tensor& noise) {
  const auto plain = [](const at::Tensor& x) { return x.detach().to(at::kFloat).contiguous(); };
  const at::Tensor means = plain(mean), log_stds = plain(log_std), noises = plain(noise);
  const at::Tensor action = at::empty_like(means), logp = at::empty_like(means);
  const auto width = static_cast<std::size_t>(means.size(1));
  for (std::size_t at = 0; at < static_cast<std::size_t>(means.numel()); at += width) {
    draw_gaussian({means.const_data_ptr<float>() + at, width}, log_stds.const_data_ptr<float>(),
                  noises.const_data_ptr<float>() + at, action.data_ptr<float>() + at, logp.data_ptr<float>() + at);
  }
  return action.to(mean.scalar_type());
}

void judge_diagonal(const RlCase& golden, const RlVariant& variant) {
  const auto w = golden_leaves(golden, "ppo_w.");
  const auto& obs = golden.in("obs");
  const auto mean = linear(w, "actor_mean", golden_layers(w, "backbone.", obs, true, golden_tanh));
  const auto& log_std = w.at("actor_logstd");
  const auto action = drawn(mean, log_std, golden.in("noise"));
  const auto logp = gaussian_logp(mean, log_std, action);
  const auto entropy = gaussian_entropy(log_std).expand_as(mean);
  const auto values = golden_layers(w, "value_head.mlp.", obs, false, golden_tanh);
  variant.expect("action", action, kClose);
  variant.expect("logprobs", logp, kClose);
  variant.expect("entropy", entropy, kClose);
  variant.expect("values", values, kClose);
  expect_gradients((logp * golden.in("coef")).sum() + entropy.sum() + values.sum(), w, variant, "grad.", kClose);
}

void judge_squashed(const RlCase& golden, const RlVariant& variant) {
  const auto w = golden_leaves(golden, "sac_w.");
  const auto features = golden_layers(w, "backbone.", golden.in("obs"), true, golden_tanh);
  const auto range = variant.config.at("log_std_range").get<std::vector<double>>();
  const auto mean = linear(w, "actor_mean", features);
  const auto log_std = squash_log_std(linear(w, "actor_logstd", features), range.at(0), range.at(1));
  const auto bounds = make_action_range({-1}, {1}, mean.size(1));
  const auto sample =
      sample_squashed(mean, log_std, golden.in("noise"), bounds, TanhCorrection::epsilon, variant.get("eps", 1e-6));
  variant.expect("action", sample.action, kClose);
  expect_squashed(sample.logp, variant.at("logprobs"), sample.u, variant.name + " logprobs");
  const auto& coef = golden.in("coef");
  expect_gradients((sample.logp * coef).sum() + (sample.action * coef).sum(), w, variant, "grad.", kClose);
}

/// Three forms of the correction on given numbers.
void judge_corrections(const RlVariant& variant) {
  const auto& mean = variant.at("mu");
  const auto bounds = make_action_range({-1}, {1}, mean.size(1));
  const auto sample = [&](TanhCorrection correction, double epsilon) {
    return sample_squashed(mean, variant.at("log_std"), variant.at("noise"), bounds, correction, epsilon);
  };
  const auto plain = sample(TanhCorrection::epsilon, 1e-6);
  variant.expect("u", plain.u, kClose);
  variant.expect("a", plain.action, kClose);
  expect_squashed(plain.logp, variant.at("logp_eps6"), plain.u, variant.name + " logp_eps6");
  expect_squashed(sample(TanhCorrection::epsilon, 1e-7).logp, variant.at("logp_eps7"), plain.u,
                  variant.name + " logp_eps7");
  expect_squashed(sample(TanhCorrection::stable, 0).logp, variant.at("logp_stable"), plain.u,
                  variant.name + " logp_stable");
}

/// The policy of DSRL: one action of the width of in.noise_act, repeated over the horizon; 1e-7 in the correction.
void judge_noise_policy(const RlCase& golden, const RlVariant& variant) {
  const auto w = golden_leaves(golden, "dsrl_w.");
  const auto& noise = golden.in("noise_act");
  const auto features = golden_layers(w, "shared_net.", golden.in("obs"), true, golden_relu);
  const auto mean = linear(w, "mean_layer", features);
  const auto log_std = linear(w, "log_std_layer", features).clamp(-20, 2);
  const auto bounds = make_action_range({variant.get("low", -1.0F)}, {variant.get("high", 1.0F)}, mean.size(1));
  const auto sample = sample_squashed(mean, log_std, noise, bounds, TanhCorrection::epsilon, 1e-7);
  const auto logp = sample.logp.sum(1);
  const auto over_horizon = [&](const at::Tensor& action) {
    return action.unsqueeze(1).expand_as(variant.at("action"));
  };
  variant.expect("action", over_horizon(sample.action), kClose);
  variant.expect("logprob", logp, kClose);
  if (variant.has("deterministic_action")) {
    variant.expect("deterministic_action", over_horizon(squashed_mode(mean, bounds)), kClose);
  }
  if (variant.has("eval_entropy")) {
    variant.expect("eval_entropy", gaussian_entropy(log_std).sum(1), kClose);
  }
  if (variant.has("eval_logprob")) {
    // The reference sums the correction over the whole batch before it subtracts it from each row: parity's number.
    // Its density of a stored action inverts tanh with the clamp of the note.
    const auto u = ((sample.action - bounds.bias) / bounds.scale).clamp(-0.999999, 0.999999).atanh();
    const auto density =
        gaussian_logp(mean, log_std, u).sum(1) - squash_log_slope(u, bounds, TanhCorrection::epsilon, 1e-7).sum();
    variant.expect("eval_logprob", density, kClose);
  }
  if (variant.has("grad.mean_layer.weight")) {
    expect_gradients((logp * golden.in("coef").select(1, 0)).sum(), w, variant, "grad.", kClose);
  }
}

void judge_gaussian(const RlCase& golden) {
  for (const auto& variant : golden.variants()) {
    if (variant.has("values")) {
      judge_diagonal(golden, variant);
    } else if (variant.config.contains("log_std_range")) {
      judge_squashed(golden, variant);
    } else if (variant.has("logp_stable")) {
      judge_corrections(variant);
    } else if (variant.has("logprob")) {
      judge_noise_policy(golden, variant);
    } else {
      ADD_FAILURE() << "gaussian_policy has an unknown variant \"" << variant.name << "\"";
    }
  }
}

}  // namespace

RlHandlers gaussian_handlers() { return {{"gaussian_policy", judge_gaussian}}; }

}  // namespace troupe::testing
