#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "workers/checkpoint/run_directory.h"

namespace troupe::workers {

/// One run as a list of runs shows it.
struct ListedRun {
  RunDirectory run;
  std::string name;
  /// A JobState as state.db has it ("DONE", "FAILED"); "KILLED" where it says that the job is under way and no process
  /// controls it; "UNREADABLE" without a state.db that opens.
  std::string state;
  /// The controller's, of a live run.
  std::optional<pid_t> pid = {};
  /// The newest step of metrics.jsonl, and the newest loss or return there; absent: none yet.
  std::int64_t step = 0;
  std::string measure = {};
  std::optional<double> value = {};
  /// Seconds since its controller was last heard of: the age of its newest metrics, else of its folder.
  double age_seconds = 0;
  std::int64_t bytes = 0;
  /// `run_root/latest` points here.
  bool is_latest = false;
};

/// One run, without its size and whether it is the latest.
ListedRun list_run(const RunDirectory& run);

/// Every run below `run_root`, by name, newest first within a name. Reads the ends of their metrics and their sizes.
std::vector<ListedRun> list_runs(const std::string& run_root);

/// Those that may be removed: neither live, nor `latest`, nor among the newest `keep` of their name.
std::vector<ListedRun> removable_runs(const std::vector<ListedRun>& runs, std::int64_t keep);

}  // namespace troupe::workers
