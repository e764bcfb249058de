#pragma once

#include <caf/all.hpp>
#include <memory>
#include <string>

#include "actors/bridge.h"
#include "base/result.h"
#include "comm/control/io_loop.h"

namespace troupe::actors {

/// What every process of a job has: the I/O loop, the bridge and the actor system. The destructor ends the actor system
/// first (which waits for every actor), then the loop, which calls the bridge, then the bridge. Owned by one thread.
struct Process {
  /// `self` names this process in logs and envelopes; the bridge gets a fresh incarnation. CAF runs 2 to 4 scheduler
  /// threads, at most one a core, of at most 50 messages an actor at a time. Errors: those of IoLoop::start.
  static Result<std::unique_ptr<Process>> start(const std::string& self, OrderedDelivery::Limits limits = {});
  ~Process();

  /// Sockets, timers and descriptors, on one thread of its own.
  std::unique_ptr<IoLoop> loop;
  /// Delivery of control messages by name.
  std::unique_ptr<Bridge> bridge;
  /// Outlives `system`, which refers to it.
  std::unique_ptr<caf::actor_system_config> config;
  std::unique_ptr<caf::actor_system> system;
};

/// A flag that one thread waits for and another sets, once: it cannot be cleared. Thread-safe.
class Latch {
 public:
  /// Wakes every waiting thread.
  void set();
  bool is_set() const;
  /// True if set within `deadline`.
  bool wait_for(std::chrono::milliseconds deadline) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool set_ = false;
};

/// True once an actor that was told to end has ended; false if it has not within `deadline`.
[[nodiscard]] bool wait_for_end(caf::actor_system& system, const MailboxActor& actor, std::chrono::seconds deadline);

/// This program's path (/proc/self/exe) for starting host processes; "troupe" where it cannot be read.
std::string own_executable();

}  // namespace troupe::actors
