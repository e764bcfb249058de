#pragma once

#include <cstddef>
#include <vector>

#include "model/program/graph.h"
#include "model/program/recompute_level.h"

namespace troupe::model {

/// What lies between a unit's forward and its backward.
struct Replay {
  /// by id: forward values that are kept
  std::vector<bool> kept;
  /// forward operations that the backward runs again, in order, from what is kept or bound
  std::vector<std::size_t> operations;
};

/// For a graph whose first `forward` operations are the forward: so that all values are there which the others read.
/// Pure.
Replay plan_replay(const Graph& graph, std::size_t forward, RecomputeLevel level);

}  // namespace troupe::model
