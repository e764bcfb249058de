#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>

#include "configs/algorithm_config.h"
#include "model/loss/aggregation.h"
#include "model/loss/granularity.h"
#include "model/loss/kl_penalty.h"
#include "model/loss/ppo_loss.h"

namespace troupe::model {

// The whole loss of on-policy algorithms over one micro-batch. Shape legend: N rows (policy calls), K actions in a
// chunk, L numbers of a log-probability ([N,K*A], or [N,K] for discrete actions), V values of a row: 1, or K with
// action-level rewards.

/// What does not change from batch to batch.
struct PolicyGradientOptions {
  ActorLoss actor = ActorLoss::ppo;
  /// K, actions of a chunk
  std::int64_t chunk = 1;
  /// false: one reward, advantage and value per chunk
  bool reward_per_action = true;
  Granularity logp_level = Granularity::action;
  Granularity entropy_level = Granularity::action;
  PpoClip clip;
  /// decoupled loss: entries whose behaviour weight is above this are cut; 0: none is
  double behaviour_weight_max = 2;
  ValueLossOptions value;
  double value_coef = 0.5;
  double entropy_bonus = 0;
  double kl_beta = 0;
  KlEstimator kl_estimator = KlEstimator::k3;
  /// of actor and value loss; entropy and divergence are means over valid cells always
  Aggregation aggregation = Aggregation::mean;
  /// control steps of the longest episode, for aggregation trajectory
  std::int64_t max_episode_steps = 0;
  /// Reproduces RLinf's actor loss: with one reward a chunk, actions that were not executed count like the others, and
  /// where it forgets to broadcast the mask entries finer than a cell are summed over the cell.
  bool parity = false;
};

/// From a job's configuration. `chunk` is env.chunk; `max_episode_steps` the environment's. Names are those that
/// configs/ accepts.
/// Errors: throws c10::Error on a name that configs/ would not accept.
PolicyGradientOptions make_policy_gradient_options(const AlgorithmConfig& algorithm, std::int64_t chunk,
                                                   std::int64_t max_episode_steps);

/// One micro-batch. Tensors marked optional may be undefined.
struct PolicyGradientInputs {
  /// [N,L] of the trained policy, unreduced
  at::Tensor logp;
  /// [N,L] or [N,K], optional: no entropy term
  at::Tensor entropy;
  /// [N,V], optional: no critic
  at::Tensor value;
  /// [N,L] of the policy that acted, at collection
  at::Tensor old_logp;
  /// [N,L], optional: interpolated from versions (decoupled), old_logp without versions
  at::Tensor proximal_logp;
  /// [N,L], optional: no divergence term
  at::Tensor reference_logp;
  /// [N,V]
  at::Tensor advantage;
  /// [N,V], the value's regression target; with value
  at::Tensor returns;
  /// [N,V], the value at collection; with value and a value clip
  at::Tensor old_value;
  /// [N,K] bool, executed actions; [N,1] with one reward a chunk: rows, all of whose actions were executed. Optional:
  /// every action
  at::Tensor mask;
  /// [N,1], counted control steps of the row's trajectory; for aggregation trajectory
  at::Tensor valid_steps;
  /// [N,1] or [N,L] i64, version of the weights that acted; optional
  at::Tensor version;
  /// scalar, the version that this update makes; with version
  at::Tensor trained_version;
  /// 1 or 2 numbers (make_cell_weights), optional: this micro-batch is the whole mini-batch
  at::Tensor scale;
  /// scalar, optional: 1. Times actor loss, entropy and divergence; 0 while only the critic is trained
  at::Tensor policy_weight;
};

/// Takes old_logp, ..., policy_weight from a batch by their rl_keys, undefined where absent. The network adds logp,
/// entropy and value.
PolicyGradientInputs policy_gradient_inputs(const std::map<std::string, at::Tensor>& batch);

struct PolicyGradientLoss {
  /// scalar, with a graph
  at::Tensor loss;
  /// scalars, detached
  std::map<std::string, at::Tensor> metrics;
};

/// loss = w (L_pi - entropy_bonus mean_m(H) + kl_beta mean_m(kl)) + value_coef L_V,  w = policy_weight
///
/// Scale: with `scale` every sum is divided by the whole mini-batch's counts, so that the mean over micro-batches and
///        ranks of the loss, of each gradient and of each metric is the masked mean over the whole mini-batch, whatever
///        the parts' valid counts are. The decoupled loss divides by kept entries: a part's mean over its kept entries
///        weighs as its valid ones.
/// Mask:  log-probabilities and entropies of actions that were not executed have no part in sums over a chunk, and an
///        entry of such an action has none in its cell's mean.
/// Rows:  a row with a number that is not finite (log-probability, advantage, value, return) is masked, whatever its
///        values; metric nonfinite_samples counts them in this micro-batch. It stays in the counts of `scale`.
/// Metrics: actor/policy_loss, policy_loss_abs, ratio, ratio_abs, clipped_ratio, dual_cliped_ratio, approx_kl (-mean
///        log ratio), kl_k3 (the estimate that target_kl bounds), clip_fraction, entropy_loss, kl_loss, total_loss (all
///        "actor/"); decoupled in place of the ratio's: actor/proximal_ratio, clipped_proximal_ratio,
///        dual_clip_fraction, behav_clip_fraction, proximal_approx_kl, behav_approx_kl, average_version,
///        current_version; critic/value_loss, critic/value_clip_ratio (fraction with |V - V_old| > c_v) and the means
///        critic/return_mean, return_sq_mean, error_mean, error_sq_mean that explained_variance() takes after they are
///        averaged.
/// Grad:  logp, entropy, value. Stream: never waits on CUDA.
/// Errors: throws c10::Error on shapes that do not fit and on a missing tensor.
PolicyGradientLoss policy_gradient_loss(const PolicyGradientInputs& inputs, const PolicyGradientOptions& options);

/// Whether the loss of log-probabilities is the clipped objective alone: no other actor's loss, no divergence from a
/// reference, no parity. An entropy that no weight changes may stand beside it.
bool is_clipped_alone(const PolicyGradientOptions& options);

/// What that objective does with log-probabilities that are not known yet, of E entries a row (granularity.h):
///     loss = sum weight entry(logp - old_logp, advantage),   entry as ppo_entries
struct ClippedTerms {
  at::Tensor old_logp, advantage, weight;  ///< [N,E]; no weight: the entry has no part
  at::Tensor counts;                       ///< bool [N,L]: numbers of actions that were executed
};
/// Rows with an old log-probability or an advantage that is not finite have no weight. `inputs` as of
/// policy_gradient_loss, without its logp. Errors: as policy_gradient_loss, and for options that say no above.
ClippedTerms clipped_terms(PolicyGradientInputs inputs, const PolicyGradientOptions& options);

/// 1 - Var(R - V) / Var(R) from the averaged means; NaN where Var(R) is 0.
double explained_variance(double return_mean, double return_sq_mean, double error_mean, double error_sq_mean);

}  // namespace troupe::model
