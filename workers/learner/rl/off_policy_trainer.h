#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "workers/learner/imitation/recorded_replay.h"
#include "workers/learner/rl/episode_summary.h"
#include "workers/learner/rl/rl_trainer.h"
#include "workers/rollout/replay/replay_buffer.h"
#include "workers/rollout/replay/replay_log.h"

namespace troupe::workers {

/// Soft actor-critic (Haarnoja et al. 2018, arXiv 1812.05905): a step is rollout.commit_every environment steps with
/// their updates, round by round. A round's items are added to the replay buffer; then updates run until their
/// number since the job's start is
///     floor((environment steps collected - sac.learning_starts) * sac.updates_per_step)
/// and the actor is published. An update trains the critics; every sac.actor_every of them as many updates of actor
/// and temperature follow (delayed, as in TD3), and every sac.target_every the targets move by sac.tau. The rank's
/// blocks are its own buffer of replay_capacity / world transitions; nothing of it crosses ranks.
///
/// Counters in the ledger: produced = resident + evicted + lost transitions, draws, updates, env_steps. Used by the
/// rank's thread.
class OffPolicyTrainer final : public RlTrainer {
 public:
  OffPolicyTrainer(const RlTrainerSetup& setup, Feed& feed);

  std::shared_ptr<const Network> network() const override { return critic_objective_; }
  std::int64_t resident_bytes() const override {
    return replay_.bytes() + (recorded_.transitions ? recorded_.transitions->bytes() : 0);
  }
  /// Reads the recordings of algorithm.demonstration_share, and the experience of a resumed run back from RUN/replay.
  /// Errors: invalid_argument (a buffer that holds less than one trajectory), data_loss; those of
  /// read_recorded_replay.
  Result<void> begin(const TrainerSession& session) override;
  Result<StepOutcome> step(std::int64_t step, bool finish_requested) override;
  /// Published round by round.
  void committed(std::int64_t, StepOutcome&) override {}
  /// RlTrainerState: updates, environment steps, totals over ranks.
  std::string state() const override;

 private:
  const NormaliserState& normaliser() const override { return no_normaliser_; }
  /// Sums over one step.
  struct Progress {
    std::map<std::string, double> sums;
    std::map<std::string, std::int64_t> counts;
    std::int64_t skipped = 0;
    double vote_seconds = 0;
  };
  /// Buffer and counters as they were at the checkpoint. Totals of the run are carried on by rank 0 alone; what is
  /// no longer resident counts as evicted.
  Result<void> restore(const std::map<std::string, std::int64_t>& totals);
  /// Takes a round, adds it to the buffer and to `items`.
  Result<void> collect_round(std::int64_t round, std::vector<CollectedItem>& items, StepOutcome& outcome);
  /// Updates since the job's start that are due once `round` is collected.
  std::int64_t updates_due(std::int64_t round) const;
  /// Every rank has a transition to draw; the same on all. Collective.
  Result<bool> may_draw();
  /// Updates until `due` of the run are made.
  Result<void> update_until(std::int64_t due, Progress& progress);
  /// One update, as the class says. Errors: failed_precondition after ten in a row that were not finite.
  Result<void> update(Progress& progress);
  /// One commit of `groups`: accumulate over micro-batches, vote, AdamW. A loss or gradient that is not finite is
  /// discarded.
  Result<void> train_phase(const Network& objective, const std::vector<std::string>& groups, const Batch& batch,
                           Progress& progress);
  /// global_batch_size / world rows, the last of them the share of demonstrations, and standard normal noise
  /// [rows, K A] of actions and next actions, keyed by the number of the draw and the rank; with sac.target_subset the
  /// critics whose least value is the target, the same on every rank.
  Batch draw();
  /// Sums of counters over ranks, for state(). Collective.
  Result<void> share_totals();

  /// Items of `step` were added to the buffer, and are in the log.
  void note_logged(std::int64_t step);
  /// Keeps files with transitions that were resident at most two checkpoint intervals ago.
  void remove_evicted_files();

  const std::shared_ptr<const Network> critic_objective_, actor_objective_;
  ReplayBuffer replay_;
  /// Empty without algorithm.demonstration_share.
  RecordedReplay recorded_;
  std::unique_ptr<ReplayLog> log_;
  const NormaliserState no_normaliser_;
  /// Policy steps of environments that were simulated for this rank.
  std::int64_t produced_ = 0;
  std::int64_t updates_ = 0, draws_ = 0, env_steps_ = 0, lost_ = 0;
  /// Batches drawn by every rank since the run began: what random draws are keyed by.
  std::int64_t draws_of_run_ = 0;
  /// By earlier lives of this run, less what reading the log evicted again.
  std::int64_t evicted_before_ = 0;
  /// Step, transitions added up to it since begin(); of files that may be needed.
  std::deque<std::pair<std::int64_t, std::int64_t>> logged_;
  /// Over ranks, at the last step.
  std::map<std::string, std::int64_t> totals_;
  std::int64_t step_ = 0;
  /// may_draw() was true: a buffer does not become empty again.
  bool may_draw_ = false;
  /// By a phase's first group.
  std::map<std::string, Divergence> divergence_;
};

}  // namespace troupe::workers
