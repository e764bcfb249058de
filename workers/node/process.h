#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace troupe::workers {

/// A host process to start.
struct ProcessSpec {
  /// Unique among the running ones, such as "decoder/0#1".
  std::string name;
  /// argv[0] is the program's path.
  std::vector<std::string> argv;
  /// Added to the inherited allow-list (docs/processes.md); wins over it.
  std::map<std::string, std::string> env = {};
  /// File that stdout and stderr are appended to; its folder is made. Empty: /dev/null.
  std::string stderr_log = {};
};

/// How a process ended.
struct ProcessExit {
  std::string name;
  pid_t pid = 0;
  /// As given to exit(); 0 when a signal ended it.
  int exit_code = 0;
  /// Number of the signal that ended it; 0: none.
  int signal = 0;
  /// kill() had been called for it.
  bool killed_by_us = false;
  /// SIGKILL while the cgroup's oom_kill counter grew.
  bool out_of_memory = false;
  /// It has not ended: SIGKILL was sent and nothing came of it within kUnkillableAfter, because a thread of it waits in
  /// the kernel (a hung disk or network file system, a device). What it has mapped or opened may still be written. A
  /// second report, of its end, comes if the kernel lets go of it.
  bool unkillable = false;
  /// Last 4 KiB it wrote to its log, made valid UTF-8.
  std::string stderr_tail;
};

/// A process that outlives its SIGKILL so long is reported as unkillable.
inline constexpr std::chrono::milliseconds kUnkillableAfter{10'000};

/// The child processes of a node: starts them, notices their end through pidfds, ends them. Thread-safe.
///
/// One thread of its own does the spawning, because the parent-death signal follows the spawning thread, and the
/// watching. A child gets: its own process group, descriptors 0-2 only, an empty signal mask, default signal actions, a
/// clean environment with TROUPE_PARENT_PID, which die_with_parent() (parent_death.h) checks first thing in main().
/// What a child leaves in its process group is killed when the child's end is noticed, before that is reported.
class ProcessTable {
 public:
  /// Called on the table's thread, once per process, in the order in which ends were noticed; must not block. It may
  /// call start() and kill(). No call comes after the destructor. Of an unkillable process it is called twice.
  using OnExit = std::function<void(const ProcessExit& exit)>;

  explicit ProcessTable(OnExit on_exit, std::chrono::milliseconds unkillable_after = kUnkillableAfter);
  /// kill_all() with 2 seconds of grace; nothing survives.
  ~ProcessTable();
  ProcessTable(const ProcessTable&) = delete;
  ProcessTable& operator=(const ProcessTable&) = delete;

  /// Starts a process and returns its pid. Errors: invalid_argument (no argv, name in use), not_found (no such
  /// program), resource_exhausted (processes, descriptors), unavailable (log file), cancelled (the table is closing),
  /// deadline_exceeded.
  Result<pid_t> start(const ProcessSpec& spec);

  /// SIGTERM now and SIGKILL after `grace`; 0 kills at once. A second call can only shorten the grace. Signals go to
  /// the process group. Returns whether a process of that name runs; one that was reported as unkillable does not
  /// count, here and below.
  bool kill(const std::string& name, std::chrono::milliseconds grace);

  /// Ends every process: SIGTERM, after `grace` SIGKILL; returns when all ends were reported, or 5 seconds after the
  /// SIGKILL. Nothing can be started afterwards.
  void kill_all(std::chrono::milliseconds grace);

  std::size_t num_running() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::workers
