#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/namespaces.h"
#include "configs/algorithm.h"

namespace troupe::configs {

/// Estimators of the divergence from a reference policy by one sample (model/loss/kl_penalty.h).
enum class KlEstimator { k1, abs, k2, k3 };
constexpr auto enum_names(KlEstimator) { return std::array{"k1", "abs", "k2", "k3"}; }

/// chunk: one number per policy call; action: one per action of the chunk; token: one per dimension of each action.
enum class Granularity { chunk, action, token };
constexpr auto enum_names(Granularity) { return std::array{"chunk", "action", "token"}; }

/// How several critics' values become one.
enum class CriticAggregation { min, mean };
constexpr auto enum_names(CriticAggregation) { return std::array{"min", "mean"}; }

/// alpha = exp(p), softplus(p), or p itself when fixed.
enum class TemperatureKind { exp, softplus, fixed };
constexpr auto enum_names(TemperatureKind) { return std::array{"exp", "softplus", "fixed"}; }

/// PPO (arXiv:1707.06347), GRPO (arXiv:2402.03300) and V-trace (arXiv:1802.01561): advantages and the policy loss. Read
/// by workers/learner/rl and model/loss.
struct PolicyGradientConfig {
  /// 1 to 2^16. Read by workers/learner/rl.
  std::int64_t update_epochs = 4;
  /// 0 to 1. Read by workers/learner/rl.
  double gae_lambda = 0.95;
  /// Read by workers/learner/rl.
  std::string advantage_norm = "global";
  /// `clip_ratio_low`: 0 to 1. Read by model/loss. `clip_ratio_high`: 0 to 1e6. Read by model/loss.
  /// ratio = exp(logp - old_logp); loss = -min(ratio A, clip(ratio) A), eq. 7 of arXiv:1707.06347.
  double clip_ratio_low = 0.2, clip_ratio_high = 0.2;
  /// 0 to 1e6. Read by model/loss.
  double clip_ratio_c = 0;
  /// Read by model/loss.
  std::string clip_range = "symmetric";
  /// 0.1 to 80. Read by model/loss.
  double log_ratio_clamp = 20;
  /// 0 to 1e6. Read by model/loss.
  double value_coef = 0.5;
  /// Read by model/loss.
  std::string value_loss = "huber";
  /// 0 to 1e9. Read by model/loss.
  double value_clip = 0.2, huber_delta = 10;
  /// 0 to 1e6. Read by model/loss.
  double entropy_bonus = 0;
  /// 0 to 1e6. Read by workers/learner/rl, model/loss.
  double kl_beta = 0;
  /// Read by model/loss.
  /// With r = log of the ratio of both policies: k1 -r, abs |r|, k2 r^2 / 2, k3 exp(r) - r - 1 up to the sign of r.
  KlEstimator kl_estimator = KlEstimator::k3;
  /// 0 to 1e6. Read by workers/learner/rl.
  double target_kl = 0;
  /// `reward_level`: read by model/policy, workers/learner/rl, model/loss. `logprob_level`: read by model/policy,
  /// model/loss. `entropy_level`: read by model/loss.
  /// logprob_level chunk wants reward_level chunk; vtrace with chunks of several actions wants reward_level chunk.
  std::string reward_level = "action";
  Granularity logprob_level = Granularity::action, entropy_level = Granularity::action;
  /// Read by model/policy, model/loss.
  std::string aggregation = "mean";
  /// Read by workers/learner/rl.
  std::string bootstrap = "standard";
  /// Steps, 0 to 2^40. Read by workers/learner/rl.
  std::int64_t critic_warmup_steps = 0;
  /// -1e12 to 1e12. Read by workers/learner/rl.
  /// Only with grpo; filter_low may not be above filter_high.
  double filter_low = 0, filter_high = 0;
  /// 0 to 1e6. Read by model/loss.
  /// 0: none is left out.
  double behaviour_weight_max = 2.0;
  /// 0 to 1e6. Read by workers/learner/rl.
  /// Source: arXiv:1802.01561 eq. 1.
  double rho_bar = 1.0, c_bar = 1.0;

  template <class V>
  static void describe(V& v) {
    v.field("update_epochs", &PolicyGradientConfig::update_epochs, "passes over one iteration's samples", "count", 1,
            1 << 16);
    v.field("gae_lambda", &PolicyGradientConfig::gae_lambda, "lambda of generalised advantage estimation and V-trace",
            "", 0, 1);
    v.choice("advantage_norm", &PolicyGradientConfig::advantage_norm,
             "over which samples advantages are centred and scaled: none, those of a rank, of all ranks (global), or "
             "of a minibatch",
             {"none", "rank", "global", "minibatch"});
    v.field("clip_ratio_low", &PolicyGradientConfig::clip_ratio_low, "the ratio is clipped below 1 - this", "", 0, 1);
    v.field("clip_ratio_high", &PolicyGradientConfig::clip_ratio_high, "the ratio is clipped above 1 + this", "", 0,
            1e6);
    v.field("clip_ratio_c", &PolicyGradientConfig::clip_ratio_c,
            "dual clip: with a negative advantage the loss stays below c * |A|; 0: off", "", 0, 1e6);
    v.choice("clip_range", &PolicyGradientConfig::clip_range,
             "symmetric: [1 - low, 1 + high]; reciprocal: [1 / (1 + low), 1 + high]", {"symmetric", "reciprocal"});
    v.field("log_ratio_clamp", &PolicyGradientConfig::log_ratio_clamp, "log ratios are clamped to +- this before exp",
            "", 0.1, 80);
    v.field("value_coef", &PolicyGradientConfig::value_coef, "weight of the value loss", "", 0, 1e6);
    v.choice("value_loss", &PolicyGradientConfig::value_loss, "error of the value", {"huber", "mse"});
    v.field("value_clip", &PolicyGradientConfig::value_clip,
            "values move at most this far from the old ones in the clipped branch; 0: no clipping", "", 0, 1e9);
    v.field("huber_delta", &PolicyGradientConfig::huber_delta, "where the Huber error becomes linear", "", 0, 1e9);
    v.field("entropy_bonus", &PolicyGradientConfig::entropy_bonus, "weight of the entropy", "", 0, 1e6);
    v.field("kl_beta", &PolicyGradientConfig::kl_beta,
            "weight of the divergence from the reference policy (model.init of the run); 0: no reference is kept", "",
            0, 1e6);
    v.choice("kl_estimator", &PolicyGradientConfig::kl_estimator, "estimator of that divergence");
    v.field("target_kl", &PolicyGradientConfig::target_kl,
            "the remaining passes of an iteration are left out once the mean k3 divergence is above this; 0: never", "",
            0, 1e6);
    v.choice("reward_level", &PolicyGradientConfig::reward_level, "one reward and value per chunk, or per action",
             {"chunk", "action"});
    v.choice("logprob_level", &PolicyGradientConfig::logprob_level,
             "log-probabilities summed over the chunk, over each action, or not");
    v.choice("entropy_level", &PolicyGradientConfig::entropy_level, "the same of the entropy");
    v.choice("aggregation", &PolicyGradientConfig::aggregation,
             "mean: over valid entries; trajectory: every trajectory weighs the same", {"mean", "trajectory"});
    v.choice("bootstrap", &PolicyGradientConfig::bootstrap,
             "value of the final observation is added to the last reward: standard at truncations, always at every "
             "end, never",
             {"standard", "always", "never"});
    v.field("critic_warmup_steps", &PolicyGradientConfig::critic_warmup_steps,
            "first optimizer steps that train the critic alone", "steps", 0, 1LL << 40);
    v.field("filter_low", &PolicyGradientConfig::filter_low,
            "grpo: groups whose mean return is below this are left out; with filter_high equal to it, none is", "",
            -1e12, 1e12);
    v.field("filter_high", &PolicyGradientConfig::filter_high,
            "grpo: groups whose mean return is above this are left out", "", -1e12, 1e12);
    v.field("behaviour_weight_max", &PolicyGradientConfig::behaviour_weight_max,
            "decoupled loss: samples whose behaviour weight is above this are left out", "", 0, 1e6);
    v.field("rho_bar", &PolicyGradientConfig::rho_bar,
            "vtrace: bound of the importance weight of the temporal difference", "", 0, 1e6);
    v.field("c_bar", &PolicyGradientConfig::c_bar, "vtrace: bound of the importance weight of the trace", "", 0, 1e6);
  }
};

/// Soft actor-critic (arXiv:1801.01290, temperature of arXiv:1812.05905).
struct SacConfig {
  /// Steps, 0 to 2^40. Read by workers/rollout, workers/learner/rl.
  std::int64_t learning_starts = 5000;
  /// 0 to 1000. Read by workers/learner/rl.
  double updates_per_step = 1.0;
  /// Transitions, 1 to 2^40. Read by workers/rollout/replay, workers/learner/rl.
  std::int64_t replay_capacity = 1'000'000;
  /// Bytes, 0 to 2^60; 0: no limit. Read by placement, workers/learner/rl.
  std::int64_t replay_log_bytes = 0;
  /// 1 to 64. Read by model/policy, workers/learner/rl.
  std::int64_t critics = 2;
  /// Read by model/policy.
  CriticAggregation target_aggregation = CriticAggregation::min, actor_aggregation = CriticAggregation::min;
  /// 0 to 64. Read by model/policy, workers/learner/rl.
  std::int64_t target_subset = 0;
  /// 0 to 1. Read by workers/learner/rl.
  /// target = (1 - tau) target + tau online.
  double tau = 0.005;
  /// Updates, 1 to 2^20. Read by workers/learner/rl.
  std::int64_t target_every = 1, actor_every = 1;
  /// Read by model/policy.
  TemperatureKind temperature = TemperatureKind::exp;
  /// 0 to 1e6. Read by model/policy.
  double alpha = 1.0;
  /// -1e6 to 1e6. Read by model/policy.
  /// Units of nats.
  double target_entropy = 0;
  bool backup_entropy = true;
  /// Read by workers/learner/rl.
  std::string bootstrap = "standard";

  template <class V>
  static void describe(V& v) {
    v.field("learning_starts", &SacConfig::learning_starts,
            "environment steps with uniformly random actions before the first update", "steps", 0, 1LL << 40);
    v.field("updates_per_step", &SacConfig::updates_per_step, "critic updates per environment step", "", 0, 1000);
    v.field("replay_capacity", &SacConfig::replay_capacity, "transitions kept over all ranks; the oldest go first",
            "transitions", 1, 1LL << 40);
    v.field("replay_log_bytes", &SacConfig::replay_log_bytes,
            "most that the replay log takes on disk over all ranks; its oldest files go first, and a resumed run has "
            "what is left; 0: no limit",
            "bytes", 0, 1LL << 60);
    v.field("critics", &SacConfig::critics, "Q networks", "count", 1, 64);
    v.choice("target_aggregation", &SacConfig::target_aggregation, "of the target networks' values");
    v.choice("actor_aggregation", &SacConfig::actor_aggregation, "of the critics' values in the actor's loss");
    v.field("target_subset", &SacConfig::target_subset, "REDQ: random target networks that are aggregated; 0: all",
            "count", 0, 64);
    v.field("tau", &SacConfig::tau, "share of the online critic in one step of the moving average", "", 0, 1);
    v.field("target_every", &SacConfig::target_every, "critic updates between steps of the moving average", "updates",
            1, 1 << 20);
    v.field("actor_every", &SacConfig::actor_every,
            "critic updates between updates of actor and temperature; then as many at once", "updates", 1, 1 << 20);
    v.choice("temperature", &SacConfig::temperature, "alpha = exp(p), softplus(p), or fixed");
    v.field("alpha", &SacConfig::alpha, "temperature at the start", "", 0, 1e6);
    v.field("target_entropy", &SacConfig::target_entropy,
            "entropy that the temperature aims at; 0: minus the number of action dimensions", "", -1e6, 1e6);
    v.field("backup_entropy", &SacConfig::backup_entropy, "the target contains the entropy term");
    v.choice("bootstrap", &SacConfig::bootstrap, "standard: terminations cut the target; always: nothing does",
             {"standard", "always"});
  }
};

/// How the policy learns from experience (docs/rl.md#algorithms).
struct AlgorithmConfig {
  Algorithm name = Algorithm::ppo;
  /// 0 to 1. Read by workers/learner/rl, workers/rollout.
  double gamma = 0.99;
  /// Read by workers/learner/rl, workers/rollout.
  std::string discount = "per_chunk";
  /// 0 to 1e3. Read by workers/learner/rl.
  double value_lr = 0;
  /// 0 to 1e3. Read by workers/learner/rl.
  double temperature_lr = 0;
  /// 0 to 1e12. Read by workers/learner/rl.
  double actor_clip_norm = 0, critic_clip_norm = 0;
  /// Read by workers/learner/rl.
  bool anneal_lr = false;
  /// 0 to 1. Read by workers/learner/rl, workers/pipeline.
  /// Half of each batch is that of Ball et al. 2023 (arXiv:2302.02948, RLPD).
  double demonstration_share = 0;
  /// Read by actors, workers/learner/rl, workers/rollout.
  /// Costs the overlap of collecting and training across versions.
  bool deterministic = false;
  /// Read by model/policy, workers/learner/rl.
  bool explicit_backward = true;
  /// Read by workers/learner/rl, model/loss.
  bool parity = false;
  PolicyGradientConfig policy_gradient;
  SacConfig sac;

  AlgorithmTraits traits() const { return traits_of(name); }

  template <class V>
  static void describe(V& v) {
    v.choice("name", &AlgorithmConfig::name,
             "ppo; grpo: group-relative advantages without a critic; decoupled_ppo: PPO for rollouts that are behind; "
             "vtrace: importance-weighted actor-critic; sac: soft actor-critic");
    v.field("gamma", &AlgorithmConfig::gamma, "discount", "", 0, 1);
    v.choice("discount", &AlgorithmConfig::discount,
             "per_chunk: gamma between chunks, rewards of a chunk are summed; semi_mdp: gamma per control step",
             {"per_chunk", "semi_mdp"});
    v.field("value_lr", &AlgorithmConfig::value_lr, "learning rate of critics; 0: optimizer.lr", "", 0, 1e3);
    v.field("temperature_lr", &AlgorithmConfig::temperature_lr,
            "sac: learning rate of the temperature; 0: optimizer.lr", "", 0, 1e3);
    v.field("actor_clip_norm", &AlgorithmConfig::actor_clip_norm,
            "gradient norm limit of the actor alone; 0: training.clip_grad_norm, over actor and critic together", "", 0,
            1e12);
    v.field("critic_clip_norm", &AlgorithmConfig::critic_clip_norm, "the same of the critics", "", 0, 1e12);
    v.field("anneal_lr", &AlgorithmConfig::anneal_lr, "learning rates fall linearly to 0 over training.steps");
    v.field("demonstration_share", &AlgorithmConfig::demonstration_share,
            "sac: share of every batch that is drawn from the recordings of data.sets, below 1; 0: none", "", 0, 1);
    v.field("deterministic", &AlgorithmConfig::deterministic,
            "two runs give the same bits: rollouts wait for the exact version of the weights");
    v.field("explicit_backward", &AlgorithmConfig::explicit_backward,
            "MLP policies: the hand-written backward in place of autograd");
    v.field("parity", &AlgorithmConfig::parity, "reproduce what RLinf computes where Troupe differs (docs/rl.md)");
    v.group("policy_gradient", &AlgorithmConfig::policy_gradient, "ppo, grpo, decoupled_ppo, vtrace");
    v.group("sac", &AlgorithmConfig::sac, "soft actor-critic");
  }
};

}  // namespace troupe::configs
