#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/collective/collective.h"
#include "comm/control/messages.h"
#include "configs/job_config.h"
#include "kernels/device_names.h"
#include "model/shard/engine.h"

namespace troupe::workers {

/// One item that a committed step consumed, as the ledger records it.
struct ConsumedItem {
  /// Of the feed.
  std::int64_t position = 0;
  /// XXH3-64 of the item's bytes.
  std::uint64_t xxh3 = 0;
  /// Non-empty: it did not count.
  std::string void_reason;
};

/// What one transaction did. Metrics of rank 0 are reported; names as TensorBoard shows them ("train/loss").
struct StepOutcome {
  /// Equal on all ranks, or rank 0's own.
  std::map<std::string, double> metrics;
  std::vector<ConsumedItem> consumed;
  /// Running totals that the ledger keeps: produced, resident, evicted, lost, draws, updates ...
  /// (LedgerRecord::counters). The audit adds them over ranks: a rank gives what it counted itself, and what is a
  /// total over all ranks already is given by rank 0 alone.
  std::map<std::string, std::int64_t> counters;
  /// False: VOID, the step counts without an update.
  bool applied = true;
  /// Some rank was asked to finish; the same on all ranks.
  bool finish = false;
  /// Seconds waiting for data, computing, and in the vote.
  double stall_seconds = 0, compute_seconds = 0, vote_seconds = 0;
};

/// What a rank and its trainer know of the job and of themselves.
struct LearnerSetup {
  JobConfig config;
  /// "learner/0".
  std::string actor;
  /// Which start of that actor this is; with `actor` its instance name.
  std::int64_t incarnation = 0;
  /// ledger/, eval/ and replay/ are written below it.
  std::string run_dir;
  /// Folder with the desk of this node, where snapshots are published.
  std::string runtime_dir;
  /// That the rank computes on; results do not depend on it.
  int threads = 1;
  /// What the engine computes on; null: those threads.
  std::shared_ptr<kernels::ComputeDevice> device = {};
};

/// What a trainer works with between begin() and the end of its group.
struct TrainerSession {
  /// Attached and restored.
  Engine* engine = nullptr;
  /// Of all ranks; not owned. Valid until the group ends, as the engine's attachment.
  Collective* group = nullptr;
  GroupPlan plan;
  /// training.step_timeout_s: how long a take from the feed may last.
  std::chrono::milliseconds step_timeout{0};
  /// What state() returned for the checkpoint that was restored; empty at the start.
  std::string state;
  /// To the controller.
  std::function<void(const Message&)> report;
};

/// One kind of training: what a step, that is one transaction of the job, is made of. The learner rank owns groups,
/// ledger, checkpoints and deadlines and does not know which trainer it has
/// (docs/learner-engine.md#the-rank-around-it). Used by the rank's thread, except cancel()
/// and peers(). "Collective": every rank of the group calls it, in the same order.
class Trainer {
 public:
  virtual ~Trainer() = default;
  /// What the engine shards; asked once, before the first group.
  virtual std::shared_ptr<const Network> network() const = 0;
  virtual EngineOptions engine_options() const = 0;
  /// Bytes held beside the engine's.
  virtual std::int64_t resident_bytes() const = 0;

  /// A group has formed and the engine is restored to plan.resume_step. Also after a group was lost: what was
  /// collected for steps that did not commit is forgotten.
  virtual Result<void> begin(const TrainerSession& session) = 0;
  /// Trains step `step`, commit of the engine included. Collective. Errors lose the group, as Engine's do: aborted,
  /// deadline_exceeded and unavailable form it again, any other ends the job.
  virtual Result<StepOutcome> step(std::int64_t step, bool finish_requested) = 0;
  /// The step is in the ledger: what it consumed may be reused, its weights may be published. Before the rank's
  /// snapshot, so state() tells what is true after this. `outcome` is the step's, which is reported next: metrics of
  /// what this took may be added.
  virtual void committed(std::int64_t step, StepOutcome& outcome) = 0;
  /// Held-out metrics ("eval/..."), the same on all ranks; empty: nothing to evaluate. Collective. Asked before the
  /// first step of a job (step 0), after every eval.every steps, and after the last step whatever eval.every is.
  virtual Result<std::map<std::string, double>> evaluate(std::int64_t step) {
    (void)step;
    return std::map<std::string, double>{};
  }
  /// After the last step of the job (training.steps, not an early finish). Collective.
  virtual Result<void> conclude(std::int64_t step) = 0;
  /// What begin() needs beside the engine's state to go on from here, as JSON; empty: nothing. Rank 0's is kept in
  /// the checkpoint and handed to all ranks.
  virtual std::string state() const = 0;
  /// Makes a wait under way fail with `aborted`, until the next begin(). Any thread.
  virtual void cancel(const std::string& why) = 0;
  /// Who takes part has changed: addresses to dial for those who publish weights. Any thread, also between groups.
  virtual void peers(const Peers&) {}
};

}  // namespace troupe::workers
