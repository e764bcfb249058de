#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "base/progress.h"
#include "configs/job_config.h"
#include "workers/checkpoint/run_directory.h"
#include "workers/controller/service.h"

namespace troupe::workers {

/// A run whose job has ended, as its reports see it. Nothing is owned.
struct EndedRun {
  const ControllerService& service;
  const JobConfig& job;
  const RunDirectory& directory;
  /// Takes a line about what the report is doing, without its end.
  std::function<void(const std::string&)> say;
  /// Told how many windows of the open-loop evaluation are done.
  Progress progress{};

  const RunStatistics& statistics() const { return service.statistics(); }
  /// Whether it left one on disk.
  bool has_checkpoint() const { return !service.job().checkpoints().committed_directory().empty(); }
  /// The run directory as it is typed, relative to the working directory.
  std::string folder() const { return std::filesystem::relative(directory.root()).string(); }
};

}  // namespace troupe::workers
