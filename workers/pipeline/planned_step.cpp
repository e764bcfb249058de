#include "workers/pipeline/planned_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/step/hazards.h"
#include "model/step/step_builder.h"
#include "model/step/step_text.h"
#include "placement/memory_model.h"

namespace troupe::workers {
namespace {

StepShape shape_of(const JobConfig& job, const ModelCost& cost, const Plan& plan) {
  const std::int64_t world = plan.batch.data_ranks;
  StepShape shape{.world = static_cast<int>(world),
                  .units = {},
                  .param_bytes = gathered_bytes_per_param(job),
                  .grad_slots = static_cast<int>(gradient_slots(job, cost, world))};
  const bool has_replicated =
      std::any_of(cost.units.begin(), cost.units.end(), [](auto& unit) { return unit.replicated; });
  for (const UnitCost& unit : cost.units) {
    shape.chain += !unit.replicated;
    shape.units.push_back({.name = unit.name,
                           .padded = padded_numel(unit.numels, world),
                           .keep = unit.trainable ? UnitKeep::trained : UnitKeep::frozen,
                           .has_replicated = has_replicated && !unit.replicated});
  }
  shape.param_slots = std::min(static_cast<int>(job.parallelism.param_slots), shape.chain);
  return shape;
}

}  // namespace

Result<PlannedStep> planned_step(const JobConfig& job, const ModelCost& cost, const Plan& plan) {
  if (job.job.kind != JobKind::sft) {
    return Error{Errc::failed_precondition,
                 "--schedule shows a supervised step; this job's steps are several objectives' by turns"};
  }
  const auto arenas = std::make_shared<ArenaPlan>(shape_of(job, cost, plan));
  const StepShape& shape = arenas->shape();
  std::vector<bool> trained;
  for (const UnitShape& unit : shape.units) trained.push_back(unit.keep == UnitKeep::trained);
  const std::vector<bool> chain(trained.begin(), trained.begin() + shape.chain);
  StepBuilder builder(*arenas, StepState::empty(shape));
  for (std::int64_t micro = 0; micro < plan.batch.accumulation; ++micro)
    builder.micro_batch(chain, Differentiation::units);
  builder.vote();
  builder.update(trained);
  return PlannedStep{arenas, builder.operations()};
}

std::string to_text(const PlannedStep& step) {
  const auto hazards = find_hazards(step.operations);
  std::size_t waits = 0;
  for (const Op& op : step.operations) waits += op.waits.size();
  std::string text = fmt::format("one step of a rank of {}: {} operations, {} waits between streams, {}\n",
                                 step.plan->shape().world, step.operations.size(), waits,
                                 hazards.empty() ? "no hazard" : fmt::format("{} HAZARDS", hazards.size()));
  text += to_string(step.operations, *step.plan);
  for (const Hazard& hazard : hazards) text += to_string(hazard, step.operations, *step.plan) + "\n";
  return text;
}

}  // namespace troupe::workers
