#include <ATen/ATen.h>

#include <stdexcept>
#include <string>

#include "model/loss/policy_gradient_loss.h"
#include "model/policy/ppo_gradient.h"
#include "tests/model/golden_rl/cases.h"
#include "tests/support/visible.h"

namespace troupe::testing {

namespace {

bool is_masked(const RlVariant& v) {
  const auto mask = v.config.find("mask");
  return mask != v.config.end() && (mask->is_string() || mask->get<bool>());
}

/// The mask is broadcast to the loss: the project's rule. Elsewhere numbers are the reference's.
bool is_broadcast(const RlVariant& v) { return v.config.contains("mask") && v.config.at("mask").is_string(); }

bool is_per_action(const RlVariant& v) { return v.get<std::string>("reward_type", "action_level") == "action_level"; }

Granularity level(const RlVariant& v, const std::string& key) {
  const auto name = v.get<std::string>(key, "action_level");
  return enum_value<Granularity>(name.substr(0, name.find('_'))).value();
}

bool is_per_trajectory(const RlVariant& v) {
  if (v.config.contains("ratio")) return v.config.at("ratio").get<bool>();
  return v.get<std::string>("aggregation", "").find("per-trajectory") != std::string::npos;
}

/// An option of a variant; one that it does not state is that of the case's first which does.
double stated(const RlCase& golden, const RlVariant& v, const std::string& key, double fallback) {
  if (v.config.contains(key)) return v.get(key, fallback);
  for (const auto& other : golden.variants()) {
    if (other.config.contains(key)) return other.get(key, fallback);
  }
  return fallback;
}

PolicyGradientOptions options_of(const RlCase& golden, const RlVariant& v) {
  PolicyGradientOptions o;
  o.chunk = golden.config().at("K").get<std::int64_t>();
  o.reward_per_action = is_per_action(v);
  o.logp_level = level(v, "logprob_type");
  o.entropy_level = level(v, "entropy_type");
  o.clip = {.low = stated(golden, v, "clip_ratio_low", 0.2),
            .high = stated(golden, v, "clip_ratio_high", 0.28),
            .dual = v.get("clip_ratio_c", 0.0),
            .log_ratio_min = v.get("clip_log_ratio_min", -20.0),
            .log_ratio_max = v.get("clip_log_ratio_max", 20.0)};
  o.value = {.clip = v.get("value_clip", 0.0), .is_huber = true, .huber_delta = v.get("huber_delta", 10.0)};
  o.value_coef = 1;
  o.entropy_bonus = v.get("entropy_bonus", 0.0);
  o.behaviour_weight_max = v.get("behave_weight_threshold", 0.0);
  o.aggregation = is_per_trajectory(v) ? Aggregation::trajectory : Aggregation::mean;
  o.max_episode_steps = v.get<std::int64_t>("max_episode_steps", 0);
  o.parity = !is_broadcast(v);
  return o;
}

/// The reference's missing broadcast changes nothing here.
bool rules_agree(const RlVariant& v, const PolicyGradientOptions& o) {
  return !is_masked(v) || o.logp_level == (o.reward_per_action ? Granularity::action : Granularity::chunk);
}

/// The mask of a row that has one reward, without that of its actions, which the reference drops.
at::Tensor row_mask(const at::Tensor& mask_NK) { return mask_NK.to(at::kBool).any(1, /*keepdim=*/true); }

PolicyGradientInputs inputs_of(const RlCase& golden, const RlVariant& v) {
  PolicyGradientInputs in;
  in.logp = leaf(golden.in("logprobs"));
  in.old_logp = golden.in("old_logprobs");
  in.advantage = golden.in(is_per_action(v) ? "adv_k" : "adv_1");
  in.valid_steps = golden.in("n_valid");
  if (is_masked(v)) in.mask = is_per_action(v) ? golden.in("mask_k") : row_mask(golden.in("mask_k"));
  if (v.config.contains("versions")) {
    in.version = golden.tensor(v.config.at("versions").get<std::string>());
    in.trained_version = at::full({}, v.config.at("current_version").get<double>());
  }
  if (v.config.contains("proximal_logprobs"))
    in.proximal_logp = golden.tensor(v.config.at("proximal_logprobs").get<std::string>());
  if (v.get("critic_warmup", false)) in.policy_weight = at::zeros({});
  return in;
}

const std::string kSums = "__sum__/_critic_explained_variance/";

/// A metric by the reference's name; its sums for the explained variance are ours times the count.
double metric(const PolicyGradientLoss& got, const std::string& name, double count) {
  if (name.rfind(kSums, 0) != 0) return got.metrics.at(name).item<double>();
  const auto sum = name.substr(kSums.size());
  if (sum == "count") return count;
  const auto mean = sum == "returns_sum"      ? "critic/return_mean"
                    : sum == "returns_sq_sum" ? "critic/return_sq_mean"
                    : sum == "errors_sum"     ? "critic/error_mean"
                                              : "critic/error_sq_mean";
  return got.metrics.at(mean).item<double>() * count;
}

void expect_metrics(const PolicyGradientLoss& got, const RlVariant& v, double count, const std::string& what) {
  if (!v.scalars.contains("metrics")) return;
  for (const auto& [name, want] : v.scalars.at("metrics").items()) {
    // compares a difference that is already clipped with the clip range: always about 0 (README)
    if (name == "critic/value_clip_ratio") continue;
    ASSERT_TRUE(name.rfind(kSums, 0) == 0 || got.metrics.count(name) != 0) << what << " lacks the metric " << name;
    expect_close(metric(got, name, count), want.get<double>(), kClose, what + " " + name);
  }
}

/// How many cells count: what the reference divides its means by.
double counted(const PolicyGradientInputs& in) {
  if (!in.mask.defined()) return static_cast<double>(in.advantage.numel());
  const auto mask = in.mask.to(at::kBool);
  return (in.advantage.size(1) == 1 ? mask.any(1) : mask).sum().item<double>();
}

/// The manual backward that training uses says what policy_gradient_loss says, where it is used.
void judge_closed_form(const RlVariant& v, PolicyGradientInputs in, const PolicyGradientOptions& o, const char* loss,
                       const std::string& what) {
  for (auto* x : {&in.logp, &in.entropy, &in.value}) {
    if (x->defined()) *x = x->detach();
  }
  if (!in.entropy.defined()) in.entropy = at::zeros_like(in.logp);
  if (in.mask.defined()) in.mask = in.mask.to(at::kBool);
  if (in.valid_steps.defined()) in.valid_steps = in.valid_steps.to(at::kFloat);
  make_contiguous(in);
  PpoGradient gradient(o);
  const at::Tensor d_logp = at::empty_like(in.logp), d_entropy = at::empty_like(in.entropy);
  const at::Tensor d_value = in.value.defined() ? at::empty_like(in.value) : at::Tensor();
  if (!gradient.begin(in, 1.0) || !gradient.actor(in.logp, in.entropy, d_logp, d_entropy) ||
      (in.value.defined() && !gradient.critic(in.value, d_value)))
    return;
  const auto got = gradient.result();
  expect_close(got.loss, v.scalars.at(loss).get<double>(), kClose, what + " closed form");
  expect_close(d_logp, v.at("grad_logprobs"), kClose, what + " closed form, gradient of log-probabilities");
  if (v.has("grad_values"))
    expect_close(d_value, v.at("grad_values"), kClose, what + " closed form, gradient of values");
  if (v.has("grad_entropy"))
    expect_close(d_entropy, v.at("grad_entropy"), kClose, what + " closed form, gradient of the entropy");
}

void judge_actor(const RlVariant& v, const PolicyGradientInputs& in, const PolicyGradientOptions& o,
                 const std::string& what) {
  const auto got = policy_gradient_loss(in, o);
  expect_close(got.loss.item<double>(), v.scalars.at("loss").get<double>(), kClose, what + " loss");
  expect_metrics(got, v, counted(in), what);
  expect_close(gradients(got.loss, {in.logp})[0], v.at("grad_logprobs"), kClose, what + " gradient");
  judge_closed_form(v, in, o, "loss", what);
  if (!v.has("reduced_logprobs")) return;
  const auto& want = v.at("reduced_logprobs");
  const auto reduced = reduce_to(in.logp, o.chunk, o.logp_level);
  ASSERT_EQ(reduced.numel(), want.numel()) << what << " reduced log-probabilities";
  expect_close(reduced.reshape(want.sizes()), want, kClose, what + " reduced log-probabilities");
}

/// Every variant with the numbers of the reference, and by the project's rule where the two must agree.
void judge_actor_case(const RlCase& golden, ActorLoss actor) {
  for (const auto& v : golden.variants()) {
    auto o = options_of(golden, v);
    o.actor = actor;
    const auto in = inputs_of(golden, v);
    judge_actor(v, in, o, v.name);
    if (!o.parity || !rules_agree(v, o)) continue;
    o.parity = false;
    judge_actor(v, in, o, v.name + " without parity");
  }
}

void check_ppo_actor(const RlCase& golden) { judge_actor_case(golden, ActorLoss::ppo); }
void check_ppo_decoupled(const RlCase& golden) { judge_actor_case(golden, ActorLoss::decoupled); }

void check_ppo_critic(const RlCase& golden) {
  for (const auto& v : golden.variants()) {
    const auto o = options_of(golden, v);
    const auto value = leaf(golden.in("values"));
    const auto &old_value = golden.in("prev_values"), &returns = golden.in("returns");
    const auto mask = is_masked(v) ? golden.in("mask_k").to(at::kBool)
                                   : at::ones(value.sizes(), at::TensorOptions().dtype(at::kBool));
    const auto w = make_cell_weights(mask, o.aggregation, golden.in("n_valid"), o.max_episode_steps, {});
    const auto loss = weighted_sum(value_entries(value, old_value, returns, o.value).unsqueeze(2), w.loss);
    v.expect("loss", loss.item<double>(), kClose);
    v.expect("grad_values", gradients(loss, {value})[0], kClose);
    const auto mean = [&w](const at::Tensor& x) { return weighted_sum(x.unsqueeze(2), w.metric).item<double>(); };
    const auto error = returns - value.detach();
    v.expect("explained_variance",
             explained_variance(mean(returns), mean(returns.square()), mean(error), mean(error.square())), kClose);
    const auto moved = (value.detach() - old_value).abs() > o.value.clip;
    v.expect("fraction_clipped", moved.to(at::kFloat).mean().item<double>(), kClose);
  }
}

void check_ppo_actor_critic(const RlCase& golden) {
  for (const auto& v : golden.variants()) {
    const auto o = options_of(golden, v);
    auto in = inputs_of(golden, v);
    const std::string width = o.reward_per_action ? "_k" : "_1";
    in.value = leaf(golden.in("values" + width));
    in.old_value = golden.in("prev_values" + width);
    in.returns = golden.in("returns" + width);
    in.entropy = leaf(golden.in("entropy"));
    const auto got = policy_gradient_loss(in, o);
    v.expect("total", got.loss.item<double>(), kClose);
    const double entropy = got.metrics.at("actor/entropy_loss").item<double>();
    v.expect("entropy", entropy, kClose);
    v.expect("loss", got.loss.item<double>() + o.entropy_bonus * entropy, kClose);
    expect_metrics(got, v, counted(in), v.name);
    const auto grads = gradients(got.loss, {in.logp, in.value, in.entropy});
    v.expect("grad_logprobs", grads[0], kClose);
    v.expect("grad_values", grads[1], kClose);
    v.expect("grad_entropy", grads[2], kClose);
    if (!rules_agree(v, o)) continue;
    auto rule = o;
    rule.parity = false;
    judge_closed_form(v, in, rule, "total", v.name);
  }
}

// Reference arithmetic of language models, layout [batch, tokens]: no job aggregates tokens of sequences.

/// sum(x m) / max(1, sum(m)).
at::Tensor masked_mean(const at::Tensor& x, const at::Tensor& mask) {
  return at::where(mask.to(at::kBool), x, 0.0).sum() / mask.sum().clamp_min(1);
}

/// The mean over all tokens, or over sequences of their sums or means.
at::Tensor aggregate_tokens(const at::Tensor& x, const at::Tensor& mask, const std::string& how) {
  if (how == "token-mean") return masked_mean(x, mask);
  const auto sums = at::where(mask.to(at::kBool), x, 0.0).sum(-1);
  if (how == "seq-mean-token-sum") return sums.mean();
  if (how != "seq-mean-token-mean") throw std::invalid_argument("no aggregation \"" + how + "\"");
  return (sums / mask.sum(-1).clamp_min(1)).mean();
}

/// A variant without options is the one whose mask holds nothing.
void check_loss_aggregation(const RlCase& golden) {
  for (const auto& v : golden.variants()) {
    const bool is_empty = !v.config.contains("loss_agg_func");
    const auto how = v.get<std::string>("loss_agg_func", "token-mean");
    const auto mask = is_empty ? at::zeros_like(golden.in("loss_mask")) : golden.in("loss_mask");
    const auto logp = leaf(golden.in("logprobs"));
    const PpoClip clip{.low = v.get("clip_ratio_low", 0.2), .high = v.get("clip_ratio_high", 0.28)};
    const auto e = ppo_entries(logp, golden.in("old_logprobs"), golden.in("advantages"), mask, clip);
    const auto loss = aggregate_tokens(e.loss, mask, how);
    v.expect("loss", loss.item<double>(), kClose);
    v.expect("grad_logprobs", gradients(loss, {logp})[0], kClose);
    const std::map<std::string, at::Tensor> metrics = {
        {"actor/policy_loss", loss},
        {"actor/policy_loss_abs", aggregate_tokens(e.loss.abs(), mask, how)},
        {"actor/ratio", masked_mean(e.ratio, mask)},
        {"actor/ratio_abs", masked_mean((e.ratio - 1).abs(), mask)},
        {"actor/clipped_ratio", masked_mean(e.clipped_ratio, mask)},
        {"actor/dual_cliped_ratio", masked_mean(at::where(e.is_dual_clipped, e.ratio, 0.0), mask)},
        {"actor/approx_kl", -masked_mean(e.log_ratio, mask)},
        {"actor/clip_fraction", masked_mean(e.is_clipped.to(at::kFloat), mask)}};
    for (const auto& [name, want] : v.scalars.at("metrics").items()) {
      ASSERT_EQ(metrics.count(name), 1U) << v.name << " lacks the metric " << name;
      expect_close(metrics.at(name).item<double>(), want.get<double>(), kClose, v.name + " " + name);
    }
  }
}

}  // namespace

RlHandlers ppo_handlers() {
  return {{"ppo_actor", check_ppo_actor},
          {"ppo_decoupled", check_ppo_decoupled},
          {"ppo_critic", check_ppo_critic},
          {"ppo_actor_critic", check_ppo_actor_critic},
          {"loss_aggregation", check_loss_aggregation}};
}

}  // namespace troupe::testing
