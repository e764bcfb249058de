#include "model/loss/policy_gradient_loss.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "model/loss/rl_keys.h"

namespace troupe::model {

namespace {

using Metrics = std::map<std::string, at::Tensor>;

/// One micro-batch with every tensor in the three dimensions of granularity.h, and what its cells count.
struct Prepared {
  at::Tensor logp, old_logp, reference_logp, proximal, version, entropy, advantage;
  at::Tensor value, old_value, returns;
  /// What cells count, and what their executed actions do.
  CellWeights cells, actions;
  /// What RLinf's missing broadcast multiplies an actor entry's mean with; 1 without parity.
  double loss_defect = 1, count_defect = 1, ratio_defect = 1;

  /// Of numbers counted at a level.
  const CellWeights& weights(Granularity level) const { return level == Granularity::chunk ? cells : actions; }
};

at::Tensor cells(const at::Tensor& x_NV) {
  if (!x_NV.defined()) return {};
  const bool is_half = x_NV.scalar_type() == at::kBFloat16 || x_NV.scalar_type() == at::kHalf;
  return (is_half ? x_NV.to(at::kFloat) : x_NV).unsqueeze(2);
}

/// [N,K] bool: actions that were executed. Undefined where every action of a row was, where a chunk is one action,
/// whose cell says so, and with parity, which counts the whole chunk.
at::Tensor executed_actions(const PolicyGradientInputs& in, const PolicyGradientOptions& o) {
  const bool has_actions = in.mask.defined() && o.chunk > 1 && in.mask.size(1) == o.chunk;
  return has_actions && !o.parity ? in.mask.to(at::kBool) : at::Tensor();
}

/// Zeros in place of what the policies say of other actions: sums over a chunk are those over its executed actions.
PolicyGradientInputs of_actions(PolicyGradientInputs in, const at::Tensor& executed_NK) {
  for (auto* x : {&in.logp, &in.old_logp, &in.entropy, &in.reference_logp, &in.proximal_logp}) {
    if (!x->defined()) continue;
    const auto numbers = x->size(1) / executed_NK.size(1);
    *x = at::where(executed_NK.repeat_interleave(numbers, 1), *x, 0.0);
  }
  return in;
}

/// [N] bool: every number of the row is finite. A sum is finite only when its terms are.
at::Tensor finite_rows(const PolicyGradientInputs& in) {
  at::Tensor sum;
  for (const auto* x : {&in.logp, &in.old_logp, &in.advantage, &in.entropy, &in.value, &in.old_value, &in.returns,
                        &in.reference_logp, &in.proximal_logp}) {
    if (!x->defined()) continue;
    const auto row = x->detach().sum(1);
    sum = sum.defined() ? sum + row : row;
  }
  return sum.isfinite();
}

/// Zeros in the rows that are out, so that no product with a zero weight makes a NaN.
PolicyGradientInputs without_rows(PolicyGradientInputs in, const at::Tensor& is_kept_N) {
  const auto kept = is_kept_N.unsqueeze(1);
  for (auto* x : {&in.logp, &in.old_logp, &in.advantage, &in.entropy, &in.value, &in.old_value, &in.returns,
                  &in.reference_logp, &in.proximal_logp}) {
    if (x->defined()) *x = at::where(kept, *x, 0.0);
  }
  return in;
}

at::Tensor cell_mask(const PolicyGradientInputs& in, const PolicyGradientOptions& o) {
  const auto rows = in.logp.size(0);
  if (!in.mask.defined()) {
    return at::ones({rows, o.reward_per_action ? o.chunk : 1}, in.logp.options().dtype(at::kBool).requires_grad(false));
  }
  TORCH_CHECK(in.mask.dim() == 2 && in.mask.size(0) == rows &&
                  (in.mask.size(1) == o.chunk || (!o.reward_per_action && in.mask.size(1) == 1)),
              "the mask has shape ", in.mask.sizes(), "; it must be [", rows, ", ", o.chunk, "]");
  const auto mask = in.mask.to(at::kBool);
  return o.reward_per_action || mask.size(1) == 1 ? mask : mask.any(1, /*keepdim=*/true);
}

void check_shapes(const PolicyGradientInputs& in, const PolicyGradientOptions& o) {
  TORCH_CHECK(in.logp.defined() && in.old_logp.defined() && in.advantage.defined(), "a policy loss needs logp, ",
              rl_keys::kOldLogp, " and ", rl_keys::kAdvantage);
  TORCH_CHECK(in.old_logp.sizes() == in.logp.sizes(), rl_keys::kOldLogp, " has shape ", in.old_logp.sizes(),
              "; logp has ", in.logp.sizes());
  const auto width = o.reward_per_action ? o.chunk : 1;
  for (const auto& [name, x] : {std::pair{rl_keys::kAdvantage, &in.advantage},
                                {rl_keys::kReturn, &in.returns},
                                {"value", &in.value},
                                {rl_keys::kOldValue, &in.old_value}}) {
    TORCH_CHECK(!x->defined() || (x->dim() == 2 && x->size(0) == in.logp.size(0) && x->size(1) == width), name,
                " has shape ", x->sizes(), "; it must be [", in.logp.size(0), ", ", width,
                "] (policy_gradient.reward_level)");
  }
  TORCH_CHECK(
      !o.reward_per_action || o.chunk == 1 || o.logp_level != Granularity::chunk,
      "log-probabilities of whole chunks do not fit rewards of actions (policy_gradient.reward_level, logprob_level)");
  TORCH_CHECK(!in.value.defined() || (in.returns.defined() && (o.value.clip <= 0 || in.old_value.defined())),
              "a value loss needs ", rl_keys::kReturn, " and ", rl_keys::kOldValue);
}

/// A number of one action never mixes versions, nor does a chunk: the first stands for all of its level.
at::Tensor reduced_version(const at::Tensor& version, const PolicyGradientOptions& o) {
  const auto rows = version.size(0);
  if (version.numel() == rows) return version.reshape({rows, 1, 1});
  auto x = version.reshape({rows, o.chunk, -1});
  if (o.logp_level == Granularity::token) return x;
  const auto actions = x.narrow(2, 0, 1);
  return o.logp_level == Granularity::action ? actions : actions.narrow(1, 0, 1);
}

Prepared prepare(const PolicyGradientInputs& in, const PolicyGradientOptions& o, const at::Tensor& mask_NC,
                 const at::Tensor& executed_NK) {
  Prepared p;
  const auto reduced = [&o](const at::Tensor& x, Granularity level) {
    return x.defined() ? reduce_to(x, o.chunk, level) : at::Tensor();
  };
  p.logp = reduced(in.logp, o.logp_level);
  p.old_logp = reduced(in.old_logp, o.logp_level);
  p.reference_logp = reduced(in.reference_logp, o.logp_level);
  p.proximal = reduced(in.proximal_logp, o.logp_level);
  p.entropy = reduced(in.entropy, o.entropy_level);
  p.advantage = cells(in.advantage);
  p.value = cells(in.value);
  p.old_value = cells(in.old_value);
  p.returns = cells(in.returns);
  if (in.version.defined()) p.version = reduced_version(in.version, o);
  p.cells = make_cell_weights(mask_NC, o.aggregation, in.valid_steps, o.max_episode_steps, in.scale);
  p.actions = executed_NK.defined() ? shared_by_actions(p.cells, executed_NK) : p.cells;
  if (o.parity && in.mask.defined()) {
    p.count_defect =
        static_cast<double>(p.logp.numel()) / static_cast<double>(std::max<std::int64_t>(1, p.cells.mask.numel()));
    // its metrics broadcast the mask when the ratio has a dimension of its own for tokens
    p.ratio_defect = o.logp_level == Granularity::token ? 1 : p.count_defect;
    p.loss_defect = o.aggregation == Aggregation::mean ? p.count_defect : 1;
  }
  return p;
}

at::Tensor scaled(const at::Tensor& x, double factor) { return factor == 1 ? x : x * factor; }

/// Means of the ratio's diagnostics under the names of docs/metrics.md#reinforcement-learning.
void add_ratio_metrics(const PpoEntries& e, const Prepared& p, const PolicyGradientOptions& o, Metrics& m) {
  const auto& weight = p.weights(o.logp_level).metric;
  const auto ratio_mean = [&](const at::Tensor& x) { return scaled(weighted_sum(x, weight), p.ratio_defect); };
  const auto count_mean = [&](const at::Tensor& x) { return scaled(weighted_sum(x, weight), p.count_defect); };
  const bool is_ppo = o.actor == ActorLoss::ppo;
  m[is_ppo ? "actor/ratio" : "actor/proximal_ratio"] = ratio_mean(e.ratio);
  m[is_ppo ? "actor/clipped_ratio" : "actor/clipped_proximal_ratio"] = ratio_mean(e.clipped_ratio);
  m[is_ppo ? "actor/approx_kl" : "actor/proximal_approx_kl"] = -count_mean(e.log_ratio);
  m["actor/clip_fraction"] = count_mean(e.is_clipped.expand_as(e.loss));
  if (is_ppo) {
    m["actor/ratio_abs"] = ratio_mean((e.ratio - 1).abs());
    m["actor/dual_cliped_ratio"] = ratio_mean(at::where(e.is_dual_clipped, e.ratio, 0.0).expand_as(e.loss));
    m["actor/kl_k3"] = weighted_sum((-e.log_ratio).exp() + e.log_ratio - 1, weight);
  } else {
    m["actor/dual_clip_fraction"] = count_mean(e.is_dual_clipped.expand_as(e.loss));
  }
}

at::Tensor ppo_loss(const Prepared& p, const PolicyGradientOptions& o, Metrics& m) {
  const auto& weights = p.weights(o.logp_level);
  const auto e = ppo_entries(p.logp, p.old_logp, p.advantage, weights.mask, o.clip);
  auto loss = scaled(weighted_sum(e.loss, weights.loss), p.loss_defect);
  const c10::NoGradGuard no_grad;
  m["actor/policy_loss_abs"] = scaled(weighted_sum(e.loss.detach().abs(), weights.loss), p.loss_defect);
  add_ratio_metrics(e, p, o, m);
  return loss;
}

at::Tensor decoupled_loss(const PolicyGradientInputs& in, const Prepared& p, const PolicyGradientOptions& o,
                          Metrics& m) {
  auto proximal = p.proximal;
  if (!proximal.defined()) {
    proximal =
        p.version.defined() ? proximal_logp(p.logp, p.old_logp, p.version, in.trained_version) : p.old_logp.detach();
  }
  const auto& weights = p.weights(o.logp_level);
  const bool cuts = o.behaviour_weight_max > 0;
  const auto d = decoupled_entries(p.logp, p.old_logp, proximal, p.advantage, weights.mask, o.clip,
                                   cuts ? std::optional(o.behaviour_weight_max) : std::nullopt);
  // the mean over kept entries weighs as the part's valid ones: cells x entries
  const auto is_kept = d.is_kept.expand_as(p.logp);
  const auto share = weighted_sum(is_kept.to(p.logp.scalar_type()), weights.metric);
  const auto all = weighted_sum(weights.mask.expand_as(p.logp).to(p.logp.scalar_type()), weights.metric);
  const auto refill = all / at::where(share > 0, share, at::ones_like(share));
  const double defect = cuts ? 1 : p.loss_defect;
  auto loss = scaled(weighted_sum(d.ppo.loss, weights.loss), defect);
  if (o.aggregation == Aggregation::mean) loss = loss * refill;
  const c10::NoGradGuard no_grad;
  add_ratio_metrics(d.ppo, p, o, m);
  m["actor/behav_clip_fraction"] = all - scaled(share, cuts ? p.count_defect : 1);
  m["actor/behav_approx_kl"] =
      -scaled(weighted_sum(d.behaviour_log_ratio, weights.metric) * refill, cuts ? 1 : p.count_defect);
  m["actor/kl_k3"] = weighted_sum((-d.ppo.log_ratio).exp() + d.ppo.log_ratio - 1, weights.metric);
  if (p.version.defined()) {
    m["actor/average_version"] = weighted_sum(p.version.to(p.logp.scalar_type()), weights.metric);
    m["actor/current_version"] = in.trained_version.to(p.logp.scalar_type()) * all;
  }
  return loss;
}

at::Tensor vtrace_loss(const Prepared& p, const PolicyGradientOptions& o, Metrics& m) {
  const auto& weights = p.weights(o.logp_level);
  auto loss = weighted_sum(-p.advantage * p.logp, weights.loss);
  const c10::NoGradGuard no_grad;
  const auto log_ratio = at::where(weights.mask, (p.logp - p.old_logp).detach().clamp(-20, 20), 0.0);
  m["actor/approx_kl"] = -weighted_sum(log_ratio, weights.metric);
  m["actor/ratio"] = weighted_sum(log_ratio.exp(), weights.metric);
  return loss;
}

at::Tensor critic_loss(const Prepared& p, const PolicyGradientOptions& o, Metrics& m) {
  const auto entries = value_entries(p.value, p.old_value, p.returns, o.value);
  auto loss = weighted_sum(entries, p.cells.loss);
  const c10::NoGradGuard no_grad;
  const auto mean = [&p](const at::Tensor& x) { return weighted_sum(x, p.cells.metric); };
  const auto error = p.returns - p.value.detach();
  m["critic/value_loss"] = loss.detach();
  if (o.value.clip > 0) m["critic/value_clip_ratio"] = mean((p.value.detach() - p.old_value).abs() > o.value.clip);
  m["critic/return_mean"] = mean(p.returns);
  m["critic/return_sq_mean"] = mean(p.returns.square());
  m["critic/error_mean"] = mean(error);
  m["critic/error_sq_mean"] = mean(error.square());
  return loss;
}

at::Tensor actor_loss(const PolicyGradientInputs& in, const Prepared& p, const PolicyGradientOptions& o, Metrics& m) {
  at::Tensor loss;
  switch (o.actor) {
    case ActorLoss::ppo:
      loss = ppo_loss(p, o, m);
      break;
    case ActorLoss::decoupled:
      loss = decoupled_loss(in, p, o, m);
      break;
    case ActorLoss::vtrace:
      loss = vtrace_loss(p, o, m);
      break;
  }
  // the constant 0 while only the critic learns, not the negative 0 of a product
  const auto weighted = [&in](const at::Tensor& x) { return in.policy_weight.defined() ? x * in.policy_weight : x; };
  m["actor/policy_loss"] = weighted(loss.detach());
  if (p.entropy.defined()) {
    const auto entropy = weighted_sum(p.entropy, p.weights(o.entropy_level).metric);
    m["actor/entropy_loss"] = entropy.detach();
    if (o.entropy_bonus != 0) loss = loss - o.entropy_bonus * entropy;
  }
  if (p.reference_logp.defined()) {
    const auto kl = weighted_sum(kl_penalty(p.logp, p.reference_logp, o.kl_estimator), p.weights(o.logp_level).metric);
    m["actor/kl_loss"] = kl.detach();
    if (o.kl_beta != 0) loss = loss + o.kl_beta * kl;
  }
  return weighted(loss);
}

}  // namespace

PolicyGradientOptions make_policy_gradient_options(const AlgorithmConfig& algorithm, std::int64_t chunk,
                                                   std::int64_t max_episode_steps) {
  const auto& c = algorithm.policy_gradient;
  PolicyGradientOptions o;
  o.actor = algorithm.traits().actor_loss;
  o.chunk = chunk;
  o.reward_per_action = c.reward_level == "action";
  o.logp_level = c.logprob_level;
  o.entropy_level = c.entropy_level;
  o.clip = {.low = c.clip_ratio_low,
            .high = c.clip_ratio_high,
            .reciprocal = c.clip_range == "reciprocal",
            .dual = c.clip_ratio_c,
            .log_ratio_min = -c.log_ratio_clamp,
            .log_ratio_max = c.log_ratio_clamp};
  o.behaviour_weight_max = c.behaviour_weight_max;
  o.value = {.clip = c.value_clip, .is_huber = c.value_loss == "huber", .huber_delta = c.huber_delta};
  o.value_coef = c.value_coef;
  o.entropy_bonus = c.entropy_bonus;
  o.kl_beta = c.kl_beta;
  o.kl_estimator = c.kl_estimator;
  o.aggregation = c.aggregation == "trajectory" ? Aggregation::trajectory : Aggregation::mean;
  o.max_episode_steps = max_episode_steps;
  o.parity = algorithm.parity;
  return o;
}

PolicyGradientInputs policy_gradient_inputs(const std::map<std::string, at::Tensor>& batch) {
  const auto find = [&batch](const char* key) {
    const auto it = batch.find(key);
    return it == batch.end() ? at::Tensor() : it->second;
  };
  PolicyGradientInputs in;
  in.old_logp = find(rl_keys::kOldLogp);
  in.proximal_logp = find(rl_keys::kProximalLogp);
  in.reference_logp = find(rl_keys::kReferenceLogp);
  in.advantage = find(rl_keys::kAdvantage);
  in.returns = find(rl_keys::kReturn);
  in.old_value = find(rl_keys::kOldValue);
  in.mask = find(rl_keys::kMask);
  in.valid_steps = find(rl_keys::kValidSteps);
  in.version = find(rl_keys::kVersion);
  in.trained_version = find(rl_keys::kTrainedVersion);
  in.scale = find(rl_keys::kLossScale);
  in.policy_weight = find(rl_keys::kPolicyWeight);
  return in;
}

PolicyGradientLoss policy_gradient_loss(const PolicyGradientInputs& given, const PolicyGradientOptions& options) {
  check_shapes(given, options);
  auto mask = cell_mask(given, options);
  const auto executed = executed_actions(given, options);
  const auto inputs = executed.defined() ? of_actions(given, executed) : given;
  const auto is_finite = finite_rows(inputs);
  PolicyGradientLoss out;
  out.metrics["nonfinite_samples"] = is_finite.logical_not().logical_and(mask.any(1)).sum().to(at::kFloat);
  // on the CPU a look is free, and the usual case needs no copies
  const bool is_clean = is_finite.device().is_cpu() && is_finite.all().item<bool>();
  if (!is_clean) mask = mask.logical_and(is_finite.unsqueeze(1));
  const auto prepared = prepare(is_clean ? inputs : without_rows(inputs, is_finite), options, mask, executed);
  out.loss = actor_loss(inputs, prepared, options, out.metrics);
  if (prepared.value.defined()) out.loss = out.loss + options.value_coef * critic_loss(prepared, options, out.metrics);
  out.metrics["actor/total_loss"] = out.loss.detach();
  return out;
}

bool is_clipped_alone(const PolicyGradientOptions& options) {
  return options.actor == ActorLoss::ppo && options.kl_beta == 0 && !options.parity;
}

ClippedTerms clipped_terms(PolicyGradientInputs inputs, const PolicyGradientOptions& options) {
  TORCH_CHECK(is_clipped_alone(options), "the loss is not the clipped objective alone");
  const c10::NoGradGuard no_grad;
  inputs.logp = inputs.old_logp;  // of the same shape
  inputs.entropy = inputs.value = inputs.old_value = inputs.returns = inputs.reference_logp = at::Tensor();
  check_shapes(inputs, options);
  const auto executed = executed_actions(inputs, options);
  const auto counted = executed.defined() ? of_actions(inputs, executed) : inputs;
  const auto is_finite = finite_rows(counted);
  const auto mask = cell_mask(inputs, options).logical_and(is_finite.unsqueeze(1));
  const auto p = prepare(without_rows(counted, is_finite), options, mask, executed);
  const auto entries = [&p](const at::Tensor& x) { return x.expand_as(p.logp).flatten(1).contiguous(); };
  const auto& weight = p.weights(options.logp_level).loss;
  // as weighted_sum
  const auto fitting = p.logp.size(1) < weight.size(1) ? weight.sum(1, /*keepdim=*/true) : weight;
  auto share = fitting / (p.logp.numel() / std::max<std::int64_t>(1, fitting.numel()));
  if (inputs.policy_weight.defined()) share = share * inputs.policy_weight;
  const auto numbers = inputs.old_logp.size(1);
  return {entries(p.old_logp), entries(p.advantage), entries(share),
          executed.defined() ? executed.repeat_interleave(numbers / executed.size(1), 1)
                             : at::ones(inputs.old_logp.sizes(), at::TensorOptions().dtype(at::kBool))};
}

double explained_variance(double return_mean, double return_sq_mean, double error_mean, double error_sq_mean) {
  const double spread = return_sq_mean - return_mean * return_mean;
  if (!(spread > 0)) return std::numeric_limits<double>::quiet_NaN();
  return 1 - (error_sq_mean - error_mean * error_mean) / spread;
}

}  // namespace troupe::model
