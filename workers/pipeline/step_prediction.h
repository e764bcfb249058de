#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "configs/job_config.h"
#include "model/step/step_timing.h"
#include "placement/plan.h"
#include "workers/pipeline/device_timing.h"
#include "workers/pipeline/planned_step.h"

namespace troupe::workers {

/// How fast a plan's learners would be, at rates that are assumptions (docs/learner-engine.md#prediction) but for those
/// that say that they were measured.
struct StepPrediction {
  /// "H200"
  std::string device;
  PlannedStep step;
  StepTiming timing;
  DeviceRates rates;
  /// of one rank, with features from the cache
  double samples_per_second = 0;
  /// of the datasheet's dense bf16 peak, FLOP/s: 3 times the nominal forward; and of what is run, recompute included
  double peak = 0, mfu = 0, hfu = 0;
};

/// What rates are for.
struct RatesFor {
  /// "H200"
  std::string device;
  /// sequences of 4,096 tokens and more
  bool is_long = false;
  bool is_one_node = true;
};
/// Changes what is assumed.
using AdjustRates = std::function<void(const RatesFor&, DeviceRates&)>;

/// Nothing for learners on cores, on a device without known rates, or of a job without a printed step
/// (planned_step). Errors: those of planned_step.
Result<std::optional<StepPrediction>> predict_step(const JobConfig& job, const ModelCost& cost, const Plan& plan,
                                                   const AdjustRates& adjust = {});

/// A feasible plan, and how fast it would be.
struct PredictedPlan {
  Plan plan;
  StepPrediction prediction;
  /// what the job would have to say instead; empty where it allows the plan as it is
  std::string change;
};

/// First the fastest of the plans that parallelism.mode and activation_checkpoint allow where they are auto; then,
/// fastest first, the others, and those of its mode with other numbers of slots or with offload. Empty where nothing
/// can be predicted.
Result<std::vector<PredictedPlan>> predicted_plans(const ClusterSnapshot& cluster, const JobConfig& job,
                                                   const ModelCost& cost, const AdjustRates& adjust = {});

/// Lines for a plan's table, each of which says that it is predicted: rate, MFU, where the time goes, and the fastest
/// three of the others.
std::string to_text(const std::vector<PredictedPlan>& plans);

}  // namespace troupe::workers
