#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "workers/learner/rl/episode_summary.h"
#include "workers/learner/rl/policy_evaluation.h"
#include "workers/learner/rl/rl_trainer.h"
#include "workers/learner/rl/rollout_rows.h"
#include "workers/learner/rl/round_collector.h"
#include "workers/learner/rl/running_statistics.h"

namespace troupe {

/// PPO, GRPO, decoupled PPO and V-trace: a step is one iteration, that is rollout.epochs rounds of trajectories, their advantages,
/// and update_epochs passes over them in minibatches. Each trajectory is consumed by exactly one committed iteration; then the
/// weights are published and the next rounds may be collected.
class OnPolicyTrainer final : public Trainer {
 public:
  OnPolicyTrainer(RlTrainerSetup setup, Feed& feed);

  std::shared_ptr<const Network> network() const override { return objective_; }
  EngineOptions engine_options() const override { return rl_engine_options(setup_.config, *setup_.agent.policy); }
  std::int64_t resident_bytes() const override { return 0; }
  Result<void> begin(const TrainerSession& session) override;
  Result<StepOutcome> step(std::int64_t step, bool finish_requested) override;
  void committed(std::int64_t step) override;
  Result<std::map<std::string, double>> evaluate(std::int64_t step) override;
  Result<void> conclude(std::int64_t) override { return {}; }
  std::string state() const override;
  void cancel(const std::string& why) override { feed_.cancel(why); }
  /// Who is gone says nothing about whom to dial.
  void peers(const Peers& peers) override {
    if (peers.gone.empty()) publisher_.set_peers(peers.channels);
  }

 private:
  /// Sums of one iteration's minibatches.
  struct Progress {
    std::map<std::string, double> metrics;  ///< sums over the minibatches that were not skipped
    std::int64_t minibatches = 0, skipped = 0;
    double last_kl = 0;
    bool stopped = false;  ///< target_kl was passed
  };
  Result<RolloutRows> collect(std::int64_t step, StepOutcome& outcome);
  Result<RowInputs> row_inputs(std::int64_t step, const RolloutBatch& batch);
  Result<void> normalise_advantages(RolloutRows& rows) const;
  Result<void> describe_rollout(const RolloutRows& rows, const RolloutBatch& batch, StepOutcome& outcome) const;
  Result<Progress> update(std::int64_t step, const RolloutRows& rows);
  Result<void> pass(std::int64_t step, std::int64_t epoch, const RolloutRows& rows, Progress& progress);
  Result<void> train_minibatch(std::int64_t step, const Batch& minibatch, const at::Tensor& valid_cells,
                               Progress& progress);
  Result<Batch> with_scale(Batch minibatch, const at::Tensor& valid_cells, std::int64_t parts) const;

  void publish(std::int64_t version);

  const RlTrainerSetup setup_;
  const std::shared_ptr<const Network> objective_;
  Feed& feed_;
  RoundCollector collector_;
  RunningStatistics statistics_;
  WeightPublisher publisher_;
  PolicyEvaluation evaluation_;
  TrainerSession session_;
  UnitViews reference_;  ///< of the policy the run began with; only with kl_beta
  std::int64_t optimizer_steps_ = 0, env_steps_ = 0;
  int nonfinite_in_a_row_ = 0;
};

}  // namespace troupe
