#include <ATen/ATen.h>

#include <string>

#include "base/namespaces.h"
#include "model/loss/dppo_loss.h"
#include "model/loss/gae.h"
#include "model/loss/kl_penalty.h"
#include "model/loss/vtrace.h"
#include "tests/model/golden_rl/cases.h"
#include "tests/support/visible.h"

namespace troupe::testing {

namespace {

/// The case in one precision, with the tolerance its README states for it.
struct Formulas {
  const RlCase& golden;
  at::ScalarType type;
  RlTolerance tolerance;

  at::Tensor in(const std::string& name) const { return golden.in(name).to(type); }

  void vtrace_of(const RlVariant& v) const {
    const auto got = vtrace(in("rewards"), in("values"), in("dones"), in("log_ratio"),
                            {.gamma = v.config.at("gamma").get<double>(),
                             .lambda = v.config.at("lam").get<double>(),
                             .rho_bar = v.config.at("rho_bar").get<double>(),
                             .c_bar = v.config.at("c_bar").get<double>()});
    v.expect("vs", got.values, tolerance);
    v.expect("advantage", got.advantages, tolerance);
  }

  void semi_mdp(const RlVariant& v) const {
    const double gamma = v.config.at("gamma").get<double>();
    const auto rewards = in("rewards_k");
    v.expect("chunk_reward", chunk_rewards(rewards, gamma), tolerance);
    const auto dones = golden.in("dones").unsqueeze(2).expand({-1, -1, rewards.size(2)});
    const auto got = rollout_gae(
        rewards, in("values").unsqueeze(2), dones,
        {.gamma = gamma, .lambda = v.config.at("lam").get<double>(), .per_action = false, .semi_mdp = true});
    v.expect("advantages", got.advantages.squeeze(2), tolerance);
    v.expect("returns", got.returns.squeeze(2), tolerance);
  }

  /// Reference arithmetic (value_bootstrap of alex-petrenko/sample-factory): at a timeout the value before the step
  /// stands for that of the final observation. Jobs have the final observation.
  void value_before_step(const RlVariant& v) const {
    const double gamma = v.config.at("gamma").get<double>();
    const auto timeouts = golden.in("timeouts").to(at::kBool);
    const auto before = in("values").narrow(0, 0, timeouts.size(0));
    const auto rewards = in("rewards") + gamma * before * timeouts;
    v.expect("rewards", rewards, tolerance);
    auto dones = golden.in("dones").to(at::kBool);
    dones.narrow(0, 1, dones.size(0) - 1).logical_or_(timeouts);
    const auto got = gae(rewards, in("values"), dones, gamma, v.config.at("lam").get<double>());
    v.expect("advantages", got.advantages, tolerance);
  }

  void dppo(const RlVariant& v) const {
    const auto& c = v.config;
    const DppoOptions o{.denoising_discount = c.at("g_d").get<double>(),
                        .clip = c.at("eps").get<double>(),
                        .clip_base = c.at("base").get<double>(),
                        .clip_rate = c.at("rate").get<double>(),
                        .logp_min = c.at("clamp").at(0).get<double>(),
                        .logp_max = c.at("clamp").at(1).get<double>()};
    const auto logp = leaf(in("dppo_logprobs"));
    const auto old_logp = in("dppo_old_logprobs");
    const auto steps = logp.size(1);
    v.expect("discount", dppo_discounts(steps, o.denoising_discount), tolerance);
    v.expect("clip_eps", dppo_clips(steps, o), tolerance);
    v.expect("ratio", dppo_ratios(logp, old_logp, o), tolerance);
    const auto loss = dppo_loss(logp, old_logp, in("dppo_adv"), o);
    v.expect("loss", loss.item<double>(), tolerance);
    v.expect("grad_logprobs", gradients(loss, {logp})[0], tolerance);
  }
};

void check_formula_only(const RlCase& golden) {
  for (const auto& precision :
       {Formulas{golden, at::kDouble, {1e-9, 1e-9}}, Formulas{golden, at::kFloat, {1e-5, 1e-5}}}) {
    for (const auto& v : golden.variants()) {
      if (v.has("vs")) {
        precision.vtrace_of(v);
      } else if (v.has("chunk_reward")) {
        precision.semi_mdp(v);
      } else if (v.has("clip_eps")) {
        precision.dppo(v);
      } else if (v.has("rewards")) {
        precision.value_before_step(v);
      } else {
        ADD_FAILURE() << v.name << " is no formula that is known";
      }
    }
  }
}

/// A variant's name is its estimator's.
void check_kl_penalty(const RlCase& golden) {
  for (const auto& v : golden.variants()) {
    const auto logp = leaf(golden.in("logprob"));
    const auto value = kl_penalty(logp, golden.in("ref_logprob"), enum_value<KlEstimator>(v.name).value());
    v.expect("value", value, kClose);
    v.expect("grad_logprob", gradients(value.sum(), {logp})[0], kClose);
  }
}

}  // namespace

RlHandlers formula_handlers() { return {{"formula_only", check_formula_only}, {"kl_penalty", check_kl_penalty}}; }

}  // namespace troupe::testing
