#include "workers/pipeline/planned_step.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/step/hazards.h"
#include "model/step/step_builder.h"
#include "model/step/step_text.h"
#include "placement/memory_model.h"
#include "placement/planner.h"
#include "placement/recompute_plan.h"
#include "placement/sharding.h"

namespace troupe::workers {
namespace {

/// What blocks keep of a micro-batch.
void add_kept(StepShape& shape, const JobConfig& job, const ModelCost& model, const Plan& plan) {
  const BlockCounts counts = block_counts(job.activation_checkpoint, job.model.dit.num_layers);
  const std::vector<std::size_t> levels = block_levels(counts);
  for (int u = 1; u + 1 < shape.chain; ++u) {
    const LevelCost& keeps = model.levels.at(levels.at(static_cast<std::size_t>(u) - 1));
    const std::int64_t kept = u + 2 < shape.chain ? keeps.kept_bytes : keeps.last_kept_bytes;
    shape.units[static_cast<std::size_t>(u)].kept =
        std::max<std::int64_t>(1, kept * plan.batch.micro / model.level_samples);
  }
}

/// Of a decided job.
StepShape shape_of(const JobConfig& job, const ModelCost& cost, const Plan& plan) {
  const std::int64_t world = sharing_ranks(job.parallelism, plan.batch.data_ranks);
  StepShape shape{.world = static_cast<int>(world),
                  .replicas = static_cast<int>(plan.batch.data_ranks / world),
                  .units = {},
                  .param_bytes = gathered_bytes_per_param(job),
                  .moment_bytes = job.optimizer.moments == "bf16" ? 2 : 4,
                  .keeps_average = job.ema.decay > 0,
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
  shape.whole_gradients = job.parallelism.mode == "zero1";
  shape.reduce_scatters = job.parallelism.reduce == "nccl";
  shape.offloads_states = job.offload.states;
  shape.param_slots = keeps_parameters(job.parallelism)
                          ? shape.chain
                          : std::min(static_cast<int>(job.parallelism.param_slots), shape.chain);
  shape.stash_slots = job.offload.activations ? kStashSlots : 0;
  add_kept(shape, job, cost, plan);
  return shape;
}

}  // namespace

Result<PlannedStep> planned_step(const JobConfig& job, const ModelCost& cost, const Plan& plan) {
  if (job.job.kind != JobKind::sft || cost.blocks == 0) {
    return Error{Errc::failed_precondition,
                 "--schedule shows the step of a job that fine-tunes DreamZero; this job trains a policy"};
  }
  const auto arenas = std::make_shared<ArenaPlan>(shape_of(decided_job(job, plan), cost, plan));
  const StepShape& shape = arenas->shape();
  std::vector<bool> trained;
  for (const UnitShape& unit : shape.units) trained.push_back(unit.keep == UnitKeep::trained);
  const std::vector<bool> chain(trained.begin(), trained.begin() + shape.chain);
  StepState state = StepState::empty(shape);
  // what the step before left for this one
  if (job.optimizer.lazy) state.postponed = trained;
  StepBuilder builder(*arenas, state);
  for (std::int64_t micro = 0; micro < plan.batch.accumulation; ++micro)
    builder.micro_batch(chain, Differentiation::units);
  builder.vote();
  job.optimizer.lazy ? builder.postpone_update(trained) : builder.update(trained);
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
