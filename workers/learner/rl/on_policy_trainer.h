#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "workers/learner/rl/episode_summary.h"
#include "workers/learner/rl/minibatch_rows.h"
#include "workers/learner/rl/rl_trainer.h"
#include "workers/learner/rl/rollout_rows.h"
#include "workers/learner/rl/running_statistics.h"

namespace troupe::workers {

/// PPO (Schulman et al. 2017, arXiv 1707.06347, eq. 7), GRPO (Shao et al. 2024, arXiv 2402.03300), decoupled PPO
/// (Hilton et al. 2022, arXiv 2110.00641) and V-trace (Espeholt et al. 2018, arXiv 1802.01561, eq. 1): a step is one
/// iteration, that is rollout.epochs rounds of trajectories, their advantages, and update_epochs passes over them in
/// minibatches of training.global_batch_size rows. Each trajectory is consumed by exactly one committed iteration;
/// then the weights are published and the next rounds may be collected.
///
/// A minibatch whose loss or gradient is not finite is skipped; ten in a row end the job. Passes end early once
/// the mean of kl_k3 over a pass is above target_kl. Used by the rank's thread.
class OnPolicyTrainer final : public RlTrainer {
 public:
  OnPolicyTrainer(const RlTrainerSetup& setup, Feed& feed);

  std::shared_ptr<const Network> network() const override { return objective_; }
  std::int64_t resident_bytes() const override { return 0; }
  Result<void> begin(const TrainerSession& session) override;
  Result<StepOutcome> step(std::int64_t step, bool finish_requested) override;
  /// Adds time/publish.
  void committed(std::int64_t step, StepOutcome& outcome) override;
  /// RlTrainerState: statistics of observations and returns, optimizer steps, environment steps.
  std::string state() const override;

 private:
  const NormaliserState& normaliser() const override { return statistics_.state(); }
  /// Sums of one iteration's minibatches.
  struct Progress {
    /// Sums over the minibatches that were not skipped.
    std::map<std::string, double> metrics;
    std::int64_t minibatches = 0, skipped = 0;
    double last_kl = 0;
    /// target_kl was passed.
    bool stopped = false;
  };
  /// Takes the iteration's rounds, merges their statistics and computes advantages. Rewards are scaled with
  /// statistics that these items are part of.
  Result<RolloutRows> collect(std::int64_t step, StepOutcome& outcome);
  /// Scaled rewards; with vtrace the log-probabilities of the present weights, whose critic judges the batch again;
  /// with kl_beta those of the reference.
  Result<RowInputs> row_inputs(std::int64_t step, RolloutBatch& batch);
  /// (A - mean) / deviation over this rank or all (advantage_norm local, global); nothing with grpo or minibatch.
  Result<void> normalise_advantages(RolloutRows& rows) const;
  /// Adds rollout/advantages_*, returns_mean and rewards, over the cells that count on all ranks.
  Result<void> describe_rollout(const RolloutRows& rows, const RolloutBatch& batch, StepOutcome& outcome) const;
  Result<Progress> update(std::int64_t step, const RolloutRows& rows);
  /// One pass over the rows, or over whole sequences of them where the policy has a memory, in a permutation keyed by
  /// (job.seed, step, update epoch, rank); rows that fill no minibatch are left out.
  Result<void> pass(std::int64_t step, std::int64_t epoch, MinibatchRows& rows, Progress& progress);
  /// One update from these sequences, with advantages normalised where that is per minibatch; during
  /// critic_warmup_steps of the critic alone.
  Result<void> train_minibatch(std::int64_t step, MinibatchRows& rows, std::span<const std::int64_t> sequences,
                               Progress& progress);

  const std::shared_ptr<const Network> objective_;
  RunningStatistics statistics_;
  /// Of the policy the run began with; only with kl_beta.
  UnitViews reference_;
  std::int64_t optimizer_steps_ = 0, env_steps_ = 0;
  Divergence divergence_{kRlDivergence};
};

}  // namespace troupe::workers
