#include "model/program/recompute.h"

#include <algorithm>

namespace troupe::model {
namespace {

/// Whether the level keeps what an operation of that cost wrote.
bool keeps(RecomputeLevel level, OperationCost cost) {
  switch (level) {
    case RecomputeLevel::none:
      return true;
    case RecomputeLevel::cheap:
      return cost != OperationCost::cheap;
    case RecomputeLevel::attention:
      return cost == OperationCost::attention;
    case RecomputeLevel::full:
      return false;
  }
  return false;
}

}  // namespace

Replay plan_replay(const Graph& graph, std::size_t forward, RecomputeLevel level) {
  const auto& operations = graph.operations();
  std::vector<bool> needed(graph.values().size(), false);
  for (std::size_t i = forward; i < operations.size(); ++i) {
    for (const auto id : operations[i]->reads()) needed[index_of(graph.memory_of(id))] = true;
  }
  Replay replay{.kept = std::vector<bool>(graph.values().size(), false), .operations = {}};
  for (std::size_t i = forward; i-- > 0;) {
    const auto& writes = operations[i]->writes();
    if (std::none_of(writes.begin(), writes.end(), [&](ValueId id) { return needed[index_of(id)]; })) continue;
    if (keeps(level, operations[i]->cost())) {
      for (const auto id : writes) replay.kept[index_of(id)] = needed[index_of(id)];
      continue;
    }
    replay.operations.push_back(i);
    for (const auto id : operations[i]->reads()) needed[index_of(graph.memory_of(id))] = true;
  }
  std::reverse(replay.operations.begin(), replay.operations.end());
  return replay;
}

}  // namespace troupe::model
