#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"

namespace troupe::workers {

/// The numbers of a run: metric -> step -> value.
struct MetricFile {
  std::map<std::string, std::map<std::int64_t, double>> curves{};
  /// Lines that hold no record, such as one that a crash cut off.
  std::int64_t damaged_lines = 0;
};

/// Reads a metrics.jsonl (docs/metrics.md); of a step that was trained again the later line counts. Errors: those of
/// read_file.
Result<MetricFile> read_metric_file(const std::string& path);

}  // namespace troupe::workers
