#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/step/step_builder.h"

namespace troupe::model {

/// A step's plan and its operations.
struct WholeStep {
  std::shared_ptr<const ArenaPlan> plan;
  std::vector<Op> operations;
};

/// The shape of a chain of trained units of these padded sizes.
StepShape chain_shape(const std::vector<std::int64_t>& padded, int world, int param_slots, int grad_slots);

/// One step that trains all units of the shape.
WholeStep whole_step(const StepShape& shape, int micro_batches);

/// Steps of a random network: units, ranks, slots, dtype, frozen units, adapters, target networks, objectives that
/// train a part, manual backwards, evaluation, groups that are updated alone, updates that are postponed, replicas,
/// offloaded states and activations, and snapshots in between.
WholeStep random_step(std::uint64_t seed);

}  // namespace troupe::model
