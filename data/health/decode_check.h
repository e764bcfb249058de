#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/progress.h"
#include "data/health/health_report.h"
#include "data/lerobot/lerobot_dataset.h"

namespace troupe::data {

/// The frames of one camera of one episode that are to be decoded.
struct DecodeTask {
  /// episode_index, for findings.
  std::int64_t episode = 0;
  std::string camera;
  ImageSource source;
  /// Frames [source.first, source.first + frames) are decoded.
  std::int64_t frames = 0;
};

/// Decodes every frame of every task (D13), files in parallel, the tasks of one file in order by one thread.
/// Findings: a decode error or a missing frame is a problem; a view that is all black, or of whose frames more
/// than 95% are one and the same, is a warning. Findings come in the order of `tasks` whatever `threads` is;
/// `progress` gets the frames decoded so far and how many the tables have.
DecodeReport decode_everything(std::span<const DecodeTask> tasks, std::int64_t threads,
                               std::vector<HealthFinding>& findings, const Progress& progress = {});

}  // namespace troupe::data
