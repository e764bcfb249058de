#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/result.h"
#include "comm/channel/channel.h"
#include "comm/control/actor_identity.h"
#include "comm/control/io_loop.h"
#include "comm/control/outbox.h"
#include "configs/job_config.h"
#include "env/env_spec.h"
#include "model/policy/policy_net.h"
#include "workers/rollout/inline_simulators.h"
#include "workers/rollout/rollout_worker.h"
#include "workers/rollout/weight_receiver.h"
#include "workers/stream/producer_loop.h"

namespace troupe::workers {

/// A rollout worker: consumer of simulators' transitions and of published weights, producer of trajectories for
/// every learner's feed that it is told of. One thread runs the RolloutWorker and the policy, and steps the blocks
/// where simulators are inline; one thread per feed waits for its orders; channel threads only append events to a
/// queue. Every report_seconds it tells the controller how long it was idle and busy, doing what, what its items took,
/// and what it stepped itself (ProducerTimes).
///
/// Control messages: takes Peers (`channels`: addresses of feeds; `gone`: instances whose exit is confirmed), sends
/// ActorUp with the addresses of its own channel ends, ProducerTimes, StuckProducer and Event.
class RolloutRole final {
 public:
  struct Setup {
    /// "rollout/0".
    ActorIdentity identity;
    JobConfig config;
    EnvSpec spec;
    /// Shared by the threads; immutable.
    std::shared_ptr<const PolicyNet> net;
    /// Ends of one arena: slots of BlockLayout::bytes or more, two per block. None where the blocks are stepped here.
    std::vector<ChannelOptions> simulators = {};
    std::optional<InlineSimulators::Options> inline_simulators = {};
    /// Ends of one arena: slots of rollout.bucket_bytes, two per learner and two more.
    std::vector<ChannelOptions> weights;
    /// Deterministic jobs: all that were planned, so that no block moves while they come.
    std::int64_t await_simulators = 0;
    /// That the policy's kernels share (kernels/threads.h); LibTorch's own operators have one.
    std::int64_t threads = 1;
    /// Seconds of idle and busy time together between two reports.
    double report_seconds = 2;
  };

  /// `loop` may be null when all channels are inproc. `dial_feed` opens the producer end of a feed's address.
  RolloutRole(Setup setup, IoLoop* loop, ConsumerDial dial_feed, Outbox outbox);
  ~RolloutRole();

  /// Opens the channels, starts the worker's thread and reports ActorUp. Throws std::runtime_error when a channel
  /// cannot be opened or one of the two kinds is missing.
  void start();
  /// The role's thread. Messages that are not Peers are ignored.
  void handle(const std::string& from, const Message& message);

  /// Of the worker as of its last turn. Any thread.
  RolloutWorker::Stats stats() const;
  /// Weights as they arrive. Any thread; after start().
  const WeightReceiver& weights() const { return *receiver_; }

 private:
  using Clock = RolloutWorker::Clock;
  /// Events of the worker's thread. A simulator has dialled in.
  struct Joined {
    std::string simulator;
  };
  /// The exit of a simulator (or of another producer) is confirmed; its slots were taken back.
  struct Gone {
    std::string simulator;
  };
  /// A simulator's answer lies in its slot.
  struct Answered {
    Item item;
  };
  /// A simulator is slow with a request, not stuck.
  struct WentOn {
    Credit credit;
  };
  /// A feed closed its channel: what it ordered is given up.
  struct FeedLeft {
    std::string feed;
  };
  using WorkerEvent = std::variant<Joined, Gone, Answered, WentOn, TrajectoryOrder, FeedLeft>;

  void open_channels();
  /// Any thread: appends to events_ and signals the worker's thread.
  void post(WorkerEvent event);
  /// Any thread: new weights are whole.
  void wake();
  /// The worker's thread: applies events in order, then RolloutWorker::run, then sleeps until the time that it
  /// named.
  void work();
  void apply(WorkerEvent& event, Clock::time_point now);
  void dial_feeds(const std::vector<std::string>& addresses);
  /// A feed's loop: makes an order of a credit, or gives it back with an error where its request is none.
  Result<void> take(const std::string& feed, const std::shared_ptr<ChannelProducer>& producer, const Credit& credit);
  /// The thread slept from `asleep` until now, and worked before.
  void count_time(Clock::time_point asleep, Clock::time_point now);

  const Setup setup_;
  IoLoop* const loop_;
  const ConsumerDial dial_;
  const Outbox outbox_;
  std::unique_ptr<WeightReceiver> receiver_;
  // The thread's, as the next.
  std::unique_ptr<Simulators> simulators_;
  std::unique_ptr<RolloutWorker> worker_;
  // By address.
  std::map<std::string, std::unique_ptr<ProducerLoop>> connections_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_, as the next three.
  std::vector<WorkerEvent> events_;
  bool is_woken_ = false;
  bool is_stopping_ = false;
  RolloutWorker::Stats stats_;  // the thread alone writes it
  // The thread's, as the next four: its time is counted up to here.
  Clock::time_point counted_{};
  // As the newest turn left the worker, and whether that turn had anything to do.
  bool was_idle_ = true, has_worked_ = false;
  // Since the last report, but for what the worker counts.
  ProducerTimes times_;
  // Of the worker, at the last report.
  RolloutWorker::Stats told_;
  EnvBlock::Counters told_stepped_;

  std::vector<std::unique_ptr<ChannelConsumer>> simulator_ends_, weight_ends_;
  std::thread thread_;
};

}  // namespace troupe::workers
