#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/result.h"
#include "comm/channel/channel.h"
#include "comm/control/io_loop.h"
#include "configs/job_config.h"
#include "env/env_spec.h"
#include "model/policy/policy_net.h"
#include "workers/role.h"
#include "workers/rollout/rollout_worker.h"
#include "workers/rollout/weight_receiver.h"
#include "workers/stream/consumer_dial.h"

namespace troupe {

/// A rollout worker: consumer of simulators' transitions and of published weights, producer of trajectories for every
/// learner's feed that it is told of. One thread runs the RolloutWorker and the policy; one thread per feed waits for its
/// orders. It tells the controller how long it had nothing to do (workers/stream/producer_times.h).
class RolloutRole final : public Role {
 public:
  using Dial = ConsumerDial;
  struct Setup {
    RoleIdentity identity;  ///< "rollout/0"
    JobConfig config;
    EnvSpec spec;
    std::shared_ptr<const PolicyNet> net;
    std::vector<ChannelOptions> simulators;  ///< ends of one arena: slots of BlockLayout::bytes or more, two per block
    std::vector<ChannelOptions>
        weights;  ///< ends of one arena: slots of rollout.bucket_bytes, two per learner and two more
    std::int64_t await_simulators =
        0;  ///< deterministic jobs: all that were planned, so that no block moves while they come
    double report_seconds = 2;
  };

  /// `loop` may be null when all channels are inproc.
  RolloutRole(Setup setup, IoLoop* loop, Dial dial_feed, Outbox outbox);
  ~RolloutRole() override;

  /// Opens the channels and reports ActorUp with their addresses. Throws std::runtime_error when one cannot be opened.
  void start() override;
  void handle(const std::string& from, const Message& message) override;

  /// Of the worker as of its last turn. Any thread.
  RolloutWorker::Stats stats() const;
  /// Weights as they arrive. Any thread; after start().
  const WeightReceiver& weights() const { return *receiver_; }

 private:
  using Clock = RolloutWorker::Clock;
  struct Joined {
    std::string simulator;
  };
  struct Gone {
    std::string simulator;
  };
  struct Answered {
    std::string simulator;
    Item item;
  };
  struct FeedLeft {
    std::string feed;
  };
  using Happening = std::variant<Joined, Gone, Answered, TrajectoryOrder, FeedLeft>;
  class FeedConnection;

  void open_channels();
  void post(Happening happening);
  void wake();
  void work();
  void apply(Happening& happening, Clock::time_point now);
  void dial_feeds(const std::vector<std::string>& addresses);
  void count_time(Clock::time_point now);

  const Setup setup_;
  IoLoop* const loop_;
  const Dial dial_;
  const Outbox outbox_;
  std::unique_ptr<WeightReceiver> receiver_;
  std::unique_ptr<RolloutWorker> worker_;                               // the thread's
  std::map<std::string, std::unique_ptr<FeedConnection>> connections_;  // by address

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Happening> happenings_;  // guarded by mutex_, as the next three
  bool is_woken_ = false;
  bool is_stopping_ = false;
  RolloutWorker::Stats stats_;
  Clock::time_point counted_{};  // the thread's, as the next two
  bool was_idle_ = true;
  double idle_seconds_ = 0, busy_seconds_ = 0;  // since the last report

  std::vector<std::unique_ptr<ChannelConsumer>> simulator_ends_, weight_ends_;
  std::thread thread_;
};

}  // namespace troupe
