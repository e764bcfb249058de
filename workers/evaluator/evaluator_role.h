#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/channel/channel.h"
#include "comm/control/actor_identity.h"
#include "comm/control/io_loop.h"
#include "comm/control/outbox.h"
#include "configs/job_config.h"
#include "workers/evaluator/evaluation_journal.h"
#include "workers/evaluator/evaluation_queue.h"
#include "workers/inference/agent/agent.h"
#include "workers/rollout/weight_receiver.h"

namespace troupe::workers {

/// Plays the evaluations of a job beside its training: consumer of the versions that are to be evaluated, with
/// environments of its own. A version that arrives while another one is played is left out (EvaluationQueue).
///
/// An episode is repeated once, alone, and then lost, also where an environment ends this process: the next process
/// goes on with the evaluation (EvaluationJournal). When kMostEvaluationStarts processes have played one, the rest of
/// it is lost.
///
/// Control messages: takes Peers (`gone`); sends ActorUp with the addresses of its channel ends, EvalBegun when an
/// evaluation begins, EvalReport when it has ended, and Event where one could not be played.
class EvaluatorRole final {
 public:
  struct Setup {
    /// "evaluator/0".
    ActorIdentity identity;
    JobConfig config;
    Agent agent;
    /// Ends of one arena: slots of rollout.bucket_bytes, two per learner and two more.
    std::vector<ChannelOptions> weights;
    /// Folder of the journal: the runtime directory.
    std::string folder;
    /// Threads that step environments, and that the policy's kernels share.
    std::int64_t threads = 1;
  };

  /// `loop` may be null when all channels are inproc.
  EvaluatorRole(Setup setup, IoLoop* loop, Outbox outbox);
  /// Calls stop() and waits for it.
  ~EvaluatorRole();

  /// Opens the channels, starts the thread that plays and reports ActorUp. Throws std::runtime_error when a channel
  /// cannot be opened.
  void start();
  /// Messages that are not Peers are ignored.
  void handle(const std::string& from, const Message& message);
  /// Ends the evaluation under way after its step; no other one begins. Any thread.
  void stop();

 private:
  /// A channel's thread: a version is whole.
  void arrived();
  /// What the process before left behind.
  void recover();
  /// The thread that plays.
  void work();
  /// Plays what is left to be played, and reports.
  void play(const EvaluationUnderWay& under_way);
  /// All episodes of the evaluation; nothing if it was cut off, because the role ends or the evaluation is void.
  std::optional<std::vector<EvaluationEpisode>> play_episodes(const EvaluationUnderWay& under_way, std::int64_t step);
  bool is_cut_off() const;

  const Setup setup_;
  IoLoop* const loop_;
  const Outbox outbox_;
  // The playing thread's, from start() on, as the next.
  EvaluationJournal journal_;
  std::optional<EvaluationUnderWay> under_way_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_, as the next.
  EvaluationQueue queue_;
  bool is_stopping_ = false;
  std::unique_ptr<WeightReceiver> receiver_;
  std::vector<std::unique_ptr<ChannelConsumer>> ends_;
  std::thread thread_;
};

}  // namespace troupe::workers
