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
#include "configs/job_config.h"
#include "env/env_block.h"
#include "env/executor.h"
#include "env/registry.h"
#include "workers/role.h"
#include "workers/stream/consumer_dial.h"

namespace troupe {

/// Makes the environments of one block of the job.
using MakeBlock = std::function<Result<std::unique_ptr<EnvBlock>>(std::int64_t block, Executor& executor)>;

/// As the job says: environments [block * rows, (block + 1) * rows), seeds, reset mode, chunk.
MakeBlock make_block_of(const JobConfig& job, std::shared_ptr<const EnvFactory> factory);
EnvOptions env_options_of(const EnvConfig& env);
ResetMode reset_mode_of(const EnvConfig& env);

/// A simulator: dials every rollout worker it is told of, and steps the blocks that they ask for on one executor. A block's
/// environments are made when it is first begun and destroyed when it is released or its rollout worker is left. One thread
/// per rollout worker takes requests; stepping threads answer them. It tells the controller how long nothing was asked of it
/// (workers/stream/producer_times.h). What cannot be done is answered with an item's error.
class SimulatorRole final : public Role {
 public:
  using Dial = ConsumerDial;
  struct Setup {
    RoleIdentity identity;  ///< "env/0"
    MakeBlock make_block;
    BlockLayout layout;        ///< of every block: the size of a transition
    std::int64_t actions = 0;  ///< numbers of one step: n * K * A
    Executor::Options executor;
    double report_seconds = 2;
  };

  SimulatorRole(Setup setup, Dial dial, Outbox outbox);
  ~SimulatorRole() override;

  void start() override;
  void handle(const std::string& from, const Message& message) override;

 private:
  using Clock = std::chrono::steady_clock;
  class Connection;
  void dial_workers(const Peers& peers);
  void count(int change);  ///< requests under way, by +1 or -1

  const Setup setup_;
  const Dial dial_;
  const Outbox outbox_;
  const std::unique_ptr<Executor> executor_;
  std::mutex times_mutex_;
  std::int64_t under_way_ = 0;                  // guarded by times_mutex_, as the next three
  Clock::time_point last_change_{};             // of under_way_ from or to 0; zero before the first request
  double idle_seconds_ = 0, busy_seconds_ = 0;  // since the last report
  std::map<std::string, std::unique_ptr<Connection>> connections_;  // by address
};

}  // namespace troupe
