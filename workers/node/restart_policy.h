#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "configs/cluster_config.h"

namespace troupe::workers {

/// How a wanted actor's process ended, as far as restarting it is concerned.
struct ActorDeath {
  /// "decoder/0"
  std::string actor;
  /// Its role: "decoder".
  std::string component;
  int exit_code = 0;
  int signal = 0;
  bool out_of_memory = false;
};

/// What to do about it.
struct RestartDecision {
  enum class Action : std::uint8_t {
    /// Start it again after `delay`
    restart,
    /// Over budget, or an end that starting again cannot mend.
    give_up,
  };
  Action action = Action::give_up;
  std::chrono::milliseconds delay{0};
  /// For the log and for the job's failure.
  std::string why;
};

/// Decides on restarts from budgets in a sliding window (docs/processes.md#restart). Pure: time is what the caller
/// says; not thread-safe.
///
/// - An actor may be restarted `budget` times and all actors of a component `component_budget` times within
///   `cluster.restart.window_s`.
/// - The first restart in a window is immediate, the second waits `cluster.restart.backoff_initial_s`, each further
///   one twice as long, at most `cluster.restart.backoff_max_s`; 20% jitter either way comes from the actor's name and
///   count, so it repeats exactly.
/// - A run of 10 minutes clears the actor's count.
/// - Exit codes 64, 65, 77 and 78 (bad usage, bad data, permission, unsafe configuration) are final; 75 (try again) is
///   restarted and not counted.
class RestartPolicy {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit RestartPolicy(const RestartConfig& config) : config_(config) {}

  /// The actor's process has started.
  void on_start(const std::string& actor, Time now);
  /// Call once for each death; a restart that it allows counts at once.
  RestartDecision on_exit(const ActorDeath& death, Time now);
  /// The newest death of the actor that counts was not its own fault: it does not count any more.
  void forgive(const std::string& actor);

 private:
  struct Actor {
    std::string component;
    std::deque<Time> restarts;
    Time started{};
    bool is_running = false;
  };
  void forget_old(std::deque<Time>& restarts, Time now) const;
  /// The pause before a restart that follows `restarts_before` others in the window; 0 for the first.
  std::chrono::milliseconds backoff(const std::string& actor, std::size_t restarts_before) const;

  RestartConfig config_;
  std::map<std::string, Actor> actors_;
  std::map<std::string, std::deque<Time>> components_;
};

}  // namespace troupe::workers
