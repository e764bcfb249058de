#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "data/health/health_report.h"
#include "data/lerobot/lerobot_dataset.h"

namespace troupe {

/// The pictures of one camera of one episode that are to be decoded.
struct PictureTask {
  std::int64_t episode = 0;  ///< index
  std::string camera;
  PictureSource source;
  std::int64_t pictures = 0;
};

/// Decodes every picture of every task (D13), files in parallel, the tasks of one file in order by one thread.
/// Findings: a decode error or a missing picture is a problem; a view that is all black, or of whose pictures more
/// than 95% are one and the same, is a warning. Findings come in the order of `tasks` whatever `threads` is;
/// `progress`, when given, gets the pictures decoded so far, from any thread.
DecodeReport decode_everything(std::span<const PictureTask> tasks, std::int64_t threads,
                               std::vector<HealthFinding>& findings,
                               const std::function<void(std::int64_t)>& progress = {});

}  // namespace troupe
