#include "model/wan/unit_memory_cost.h"

#include <algorithm>

#include "model/wan/planned_units.h"

namespace troupe::model {
namespace {

std::int64_t workspace_of(const UnitProgram& program) {
  return std::max(program.forward_pass().workspace_bytes, program.backward_pass().workspace_bytes);
}

}  // namespace

UnitMemoryCost unit_memory_cost(const ModelConfig& config, const WindowConfig& window, at::ScalarType dtype,
                                std::int64_t samples) {
  const PlannedUnits units(config, window, dtype, samples);
  const UnitProgram head = units.head(), loss = units.loss();
  UnitMemoryCost cost;
  for (std::size_t i = 0; i < cost.blocks.size(); ++i) {
    const auto level = static_cast<RecomputeLevel>(i);
    const UnitProgram inner = units.block(/*is_last=*/false, level), last = units.block(/*is_last=*/true, level);
    const bool keeps_all = level == RecomputeLevel::none;
    const UnitProgram prologue = units.prologue(keeps_all ? RecomputeLevel::none : RecomputeLevel::full);
    (keeps_all ? cost.ends_kept_bytes : cost.ends_rerun_bytes) =
        prologue.forward_pass().stash_bytes + head.forward_pass().stash_bytes + loss.forward_pass().stash_bytes;
    // those of a block's input, and those of the predictions in the place of one of them
    const std::int64_t handed = inner.backward_pass().gradient_bytes;
    cost.blocks[i] = {.kept_bytes = inner.forward_pass().stash_bytes,
                      .last_kept_bytes = last.forward_pass().stash_bytes,
                      .workspace_bytes = handed + std::max(handed, loss.backward_pass().gradient_bytes) +
                                         std::max({workspace_of(prologue), workspace_of(inner), workspace_of(last),
                                                   workspace_of(head), workspace_of(loss)})};
  }
  return cost;
}

}  // namespace troupe::model
