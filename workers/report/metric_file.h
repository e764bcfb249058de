#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace troupe::workers {

/// The numbers of a run: metric -> step -> value.
struct MetricFile {
  std::map<std::string, std::map<std::int64_t, double>> curves{};
  /// Step -> seconds since 1970 when its values were recorded.
  std::map<std::int64_t, double> walls{};
  /// Lines that hold no record, such as one that a crash cut off.
  std::int64_t damaged_lines = 0;
};

/// Reads a metrics.jsonl (docs/metrics.md); of a step that was trained again the later line counts. Errors: those of
/// read_file.
Result<MetricFile> read_metric_file(const std::string& path);

/// Two columns of equal length.
struct MetricCurve {
  std::vector<double> x{}, y{};
};

/// What a run counts beside optimizer steps: environment steps executed.
inline constexpr const char* kEnvSteps = "env/total_steps";

/// `metric` over optimizer steps, or with `over_env_steps` over the environment steps executed until then, where the
/// run counts them. Empty without such a metric.
MetricCurve metric_curve(const MetricFile& metrics, const std::string& metric, bool over_env_steps);

}  // namespace troupe::workers
