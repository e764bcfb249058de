#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/visible.h"
#include "workers/report/compare/run_group.h"

namespace troupe::workers {

/// A run of fine-tuning that never was: its metrics by step, its name, seed and learning rate.
inline ComparedRun made_up_run(const std::string& name, std::int64_t seed, const std::string& rate,
                               std::map<std::string, std::map<std::int64_t, double>> curves) {
  ComparedRun run{.directory = RunDirectory("/runs/" + name + "/id" + std::to_string(seed)), .job = {}};
  run.job.job.name = name;
  run.job.job.seed = seed;
  run.settings = {
      {"job.name", name}, {"job.seed", std::to_string(seed)}, {"optimizer.lr", rate}, {"training.steps", "2"}};
  for (const auto& [metric, values] : curves) {
    for (const auto& [step, value] : values) run.metrics.walls[step] = 100.0 + static_cast<double>(step);
  }
  run.metrics.curves = std::move(curves);
  return run;
}

/// A group of one seed a curve of `metric`.
inline RunGroup made_up_group(const std::string& metric, const std::vector<std::map<std::int64_t, double>>& seeds) {
  RunGroup group{.label = "made up"};
  for (std::size_t i = 0; i < seeds.size(); ++i)
    group.runs.push_back(made_up_run("made-up", static_cast<std::int64_t>(i), "0.1", {{metric, seeds[i]}}));
  return group;
}

}  // namespace troupe::workers
