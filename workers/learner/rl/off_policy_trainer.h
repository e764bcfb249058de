#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "workers/learner/rl/episode_summary.h"
#include "workers/learner/rl/policy_evaluation.h"
#include "workers/learner/rl/rl_trainer.h"
#include "workers/learner/rl/round_collector.h"
#include "workers/rollout/replay/replay_buffer.h"
#include "workers/rollout/replay/replay_log.h"

namespace troupe {

/// Soft actor-critic: a step is a block of rollout.commit_every environment steps with its updates (design.md section 7). Each of its
/// rounds is added to the replay buffer, followed by as many updates as algorithm.sac.updates_per_step says, after which the
/// actor is published. The rank's blocks are its own buffer; nothing of it crosses ranks.
/// Counters in the ledger: produced = resident + evicted + lost transitions, draws, updates, env_steps.
class OffPolicyTrainer final : public Trainer {
 public:
  OffPolicyTrainer(RlTrainerSetup setup, Feed& feed);

  std::shared_ptr<const Network> network() const override { return critic_objective_; }
  EngineOptions engine_options() const override { return rl_engine_options(setup_.config, *setup_.agent.policy); }
  std::int64_t resident_bytes() const override { return replay_.bytes(); }
  /// Reads the experience of a resumed run back from RUN/replay.
  Result<void> begin(const TrainerSession& session) override;
  Result<StepOutcome> step(std::int64_t step, bool finish_requested) override;
  void committed(std::int64_t) override {}  ///< published round by round
  Result<std::map<std::string, double>> evaluate(std::int64_t step) override;
  Result<void> conclude(std::int64_t) override { return {}; }
  std::string state() const override;
  void cancel(const std::string& why) override { feed_.cancel(why); }
  /// Who is gone says nothing about whom to dial.
  void peers(const Peers& peers) override {
    if (peers.gone.empty()) publisher_.set_peers(peers.channels);
  }

 private:
  /// Sums over one step.
  struct Progress {
    std::map<std::string, double> sums;
    std::map<std::string, std::int64_t> counts;
    std::int64_t skipped = 0;
    double vote_seconds = 0;
  };
  Result<void> restore(const std::map<std::string, std::int64_t>& totals);
  Result<void> collect_round(std::int64_t round, std::vector<CollectedItem>& items, StepOutcome& outcome);
  std::int64_t updates_due(std::int64_t round) const;
  /// Every rank has a transition to draw; the same on all. Collective.
  Result<bool> may_draw();
  Result<void> update(Progress& progress);
  Result<void> train_phase(const Network& objective, const std::vector<std::string>& groups, const Batch& batch,
                           Progress& progress);
  Batch draw();
  Result<void> share_totals();

  /// Items of `step` were added to the buffer, and are in the log.
  void note_logged(std::int64_t step);
  void remove_evicted_files();
  void publish(std::int64_t version);

  const RlTrainerSetup setup_;
  const std::shared_ptr<const Network> critic_objective_, actor_objective_;
  Feed& feed_;
  RoundCollector collector_;
  ReplayBuffer replay_;
  std::unique_ptr<ReplayLog> log_;
  WeightPublisher publisher_;
  PolicyEvaluation evaluation_;
  TrainerSession session_;
  const NormaliserState no_normaliser_;
  std::int64_t produced_ = 0;  ///< policy steps of environments that were simulated for this rank
  std::int64_t updates_ = 0, draws_ = 0, env_steps_ = 0, lost_ = 0;
  std::int64_t draws_of_run_ = 0;  ///< batches drawn by every rank since the run began: what random draws are keyed by
  std::int64_t evicted_before_ = 0;  ///< by earlier lives of this run, less what reading the log evicted again
  std::deque<std::pair<std::int64_t, std::int64_t>>
      logged_;  ///< step, transitions added up to it since begin(); of files that may be needed
  std::map<std::string, std::int64_t> totals_;  ///< over ranks, at the last step
  std::int64_t step_ = 0;
  bool may_draw_ = false;                          ///< may_draw() was true: a buffer does not become empty again
  std::map<std::string, int> nonfinite_in_a_row_;  ///< by a phase's first group
};

}  // namespace troupe
