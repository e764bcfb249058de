#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "base/namespaces.h"

namespace troupe::workers {

/// Which host process of this node is which actor, so that a peer on the node's socket is known by its process id. An
/// ended one stays known for a minute, because its last messages may still lie in the socket. Thread-safe.
class HostBook {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kRemembered{60};

  /// A process for this instance ("decoder/0#1") is about to be started: it may speak before its pid is known here.
  void expect(const std::string& instance);
  void started(const std::string& instance, pid_t pid);
  /// It has ended, or was not started.
  void ended(const std::string& instance, TimePoint now);

  /// The instance of a process; nothing: not a host of this node.
  std::optional<std::string> instance_of(pid_t pid, TimePoint now) const;
  bool is_expected(const std::string& instance) const;

 private:
  struct Host {
    std::string instance;
    std::optional<TimePoint> ended;
  };
  static bool is_forgotten(const Host& host, TimePoint now) { return host.ended && now - *host.ended > kRemembered; }
  mutable std::mutex mutex_;
  std::set<std::string> expected_;
  std::map<pid_t, Host> hosts_;
};

}  // namespace troupe::workers
