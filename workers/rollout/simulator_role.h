#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/result.h"
#include "comm/channel/channel.h"
#include "comm/control/actor_identity.h"
#include "comm/control/outbox.h"
#include "env/env_block.h"
#include "env/executor.h"
#include "workers/rollout/make_block.h"
#include "workers/stream/producer_loop.h"

namespace troupe::workers {

/// A simulator: dials every rollout worker it is told of, and steps the blocks that they ask for on one executor. A
/// block's environments are made when it is first begun and destroyed when it is released or its rollout worker is
/// left.
///
/// Threads: one per rollout worker takes requests (BlockRequest); the executor's threads step, write the transition
/// into the credit's slot and answer it. What cannot be done is answered with the item's error (a bad request, a
/// block that was not begun here, an environment that could not be made). Answers carry XXH3-64 of their bytes.
/// With Setup::is_making one more thread per rollout worker tells it of requests that take long for that reason.
/// Every report_seconds it tells the controller how long nothing was asked of it, how long it simulated, and what
/// it stepped (ProducerTimes).
class SimulatorRole final {
 public:
  struct Setup {
    /// "env/0".
    ActorIdentity identity;
    MakeBlock make_block;
    /// Of every block: the size of a transition.
    BlockLayout layout;
    /// Numbers of one step: n * K * A for n rows.
    std::int64_t actions = 0;
    Executor::Options executor;
    /// Seconds of idle and busy time together between two reports.
    double report_seconds = 2;
    /// EnvFactory::is_making of the environments. While it is true, rollout workers are told every `tell_every` that
    /// their open requests go on. May be empty.
    std::function<bool()> is_making = {};
    std::chrono::milliseconds tell_every{1000};
  };

  /// `dial` opens the producer end of a rollout worker's channel.
  SimulatorRole(Setup setup, ConsumerDial dial, Outbox outbox);
  ~SimulatorRole();

  /// Reports ActorUp; connections are made when Peers arrives.
  void start();
  /// Takes Peers: workers that are not listed any more are left, after their steps under way. Other messages are
  /// ignored.
  void handle(const std::string& from, const Message& message);

 private:
  using Clock = std::chrono::steady_clock;
  class Connection;
  void dial_workers(const Peers& peers);
  /// Requests under way, and those of them whose answer is not made yet, by +1 or -1.
  void count(int under_way, int simulating);
  /// What a step of a block has added to its counters.
  void count_step(const EnvBlock::Counters& added);

  const Setup setup_;
  const ConsumerDial dial_;
  const Outbox outbox_;
  const std::unique_ptr<Executor> executor_;
  std::mutex times_mutex_;
  // Guarded by times_mutex_, as the next two.
  std::int64_t under_way_ = 0, simulating_ = 0;
  // Of either; zero before the first request.
  Clock::time_point last_change_{};
  // Since the last report.
  ProducerTimes times_;
  // By address.
  std::map<std::string, std::unique_ptr<Connection>> connections_;
};

}  // namespace troupe::workers
