#pragma once

#include <cstdint>
#include <vector>

#include "model/program/graph.h"

namespace troupe::model {

/// The blocks of memory that a pass' values lie in.
enum class PlannedArena : std::uint8_t {
  /// of one pass: all units use it, one after the other
  workspace,
  /// of one unit, from its forward to its backward: its result and what its RecomputeLevel keeps
  stash,
  /// the gradient of one unit's input, until the unit before has used it
  gradient,
};

struct PlacedValue {
  ValueId id = kNoValue;
  PlannedArena arena = PlannedArena::workspace;
  /// bytes from the arena's begin
  std::int64_t offset = 0;
};

/// Operations that run one after the other, and where those of their values lie that are not bound. Immutable; the
/// graph outlives it.
struct Pass {
  std::vector<const Operation*> operations;
  std::vector<PlacedValue> placed;
  std::int64_t workspace_bytes = 0, stash_bytes = 0, gradient_bytes = 0;
};

/// A pass of the given operations. `fixed` says where the values lie that others read or write too; all other
/// intermediates share the workspace by their lifetimes (model/program/memory_plan.h).
Pass make_pass(const Graph& graph, const std::vector<std::size_t>& operations, const std::vector<PlacedValue>& fixed);

}  // namespace troupe::model
