#include "app/run_sinks.h"

#include <string>
#include <utility>

#include "base/metric_sinks.h"
#include "base/tensorboard.h"

namespace troupe::app {

Result<std::vector<std::unique_ptr<MetricSink>>> open_sinks(const JobConfig& job, const RunDirectory& run) {
  std::vector<std::unique_ptr<MetricSink>> sinks;
  for (const std::string& name : job.metrics.sinks) {
    auto sink = name == "jsonl" ? make_jsonl_sink(run.path("metrics.jsonl"))
                : name == "csv" ? make_csv_sink(run.path("metrics.csv"))
                                : make_tensorboard_sink(run.path("tb"));
    if (!sink) return sink.error();
    sinks.push_back(std::move(*sink));
  }
  return sinks;
}

}  // namespace troupe::app
