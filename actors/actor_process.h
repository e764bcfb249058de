#pragma once

#include <caf/all.hpp>
#include <memory>
#include <string>

#include "actors/bridge.h"
#include "base/result.h"
#include "comm/control/io_loop.h"

namespace troupe {

/// What every process of a job has: the I/O loop, the bridge and the actor system, built and taken down in the right order.
struct Process {
  /// `self` names this process in logs and envelopes.
  static Result<std::unique_ptr<Process>> start(const std::string& self);
  ~Process();

  std::unique_ptr<IoLoop> loop;
  std::unique_ptr<Bridge> bridge;
  std::unique_ptr<caf::actor_system_config> config;
  std::unique_ptr<caf::actor_system> system;
};

/// A flag that one thread waits for and another sets.
class Latch {
 public:
  void set();
  bool is_set() const;
  /// True if set within `deadline`.
  bool wait_for(std::chrono::milliseconds deadline) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool set_ = false;
};

/// This program's path, for starting hosts.
std::string own_executable();

}  // namespace troupe
