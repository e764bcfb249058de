#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "workers/sweep/swept_run.h"

namespace troupe::workers {

/// How the runs of a sweep are carried out.
struct SweepOptions {
  /// Path of the program `troupe`.
  std::string program{};
  /// What follows `run`: a file or a recipe.
  std::string job{};
  std::string run_root = "runs";
  /// Folder of one log a run, NAME.log, which later attempts append to.
  std::string logs{};
  /// Runs at a time.
  std::int64_t at_once = 1;
  /// Episodes that `troupe eval` plays with the policy of every run that has come to its end; 0: none.
  std::int64_t episodes = 0;
  /// How long runs have for their last checkpoint after an interruption.
  std::chrono::milliseconds grace{60'000};
};

/// How one run of a sweep ended.
struct SweepEnd {
  std::string name{};
  /// The commands that were needed all ended with 0.
  bool is_done = false;
  /// "exit code 4" or "signal 9"; empty when done.
  std::string how{};
  /// The last lines that a failed run said.
  std::string tail{};
  double seconds = 0;
};

/// Carries out the runs, each as a process `troupe run JOB --resume auto ...` and so from where it was left: what is
/// complete ends at once. `on_end` is told of every run, on the calling thread, in the order in which they end; it is
/// not told of those that `interrupted` ended or kept from starting. A run that fails does not end the others. Returns
/// false when interrupted. Needs no lock: two sweeps of the same runs refuse each other's, as runs do.
bool run_sweep(const std::vector<SweptRun>& runs, const SweepOptions& options, const std::atomic<bool>& interrupted,
               const std::function<void(const SweepEnd&)>& on_end);

}  // namespace troupe::workers
