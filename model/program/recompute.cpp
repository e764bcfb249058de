#include "model/program/recompute.h"

#include <algorithm>

namespace troupe::model {

std::vector<bool> values_for_backward(const Graph& graph, std::size_t forward) {
  std::vector<bool> made(graph.values().size(), false), wanted(graph.values().size(), false);
  for (std::size_t i = 0; i < forward; ++i) {
    for (const auto id : graph.operations()[i]->writes()) made[index_of(id)] = true;
  }
  for (std::size_t i = forward; i < graph.operations().size(); ++i) {
    for (const auto id : graph.operations()[i]->reads()) {
      const auto at = index_of(id);
      wanted[at] = made[at];
    }
  }
  return wanted;
}

std::vector<std::size_t> replayed_operations(const Graph& graph, std::size_t forward, const std::vector<bool>& wanted) {
  auto missing = wanted;
  std::vector<std::size_t> replayed;
  for (std::size_t i = forward; i-- > 0;) {
    const auto& operation = *graph.operations()[i];
    const auto& writes = operation.writes();
    if (std::none_of(writes.begin(), writes.end(), [&](ValueId id) { return missing[index_of(id)]; })) continue;
    replayed.push_back(i);
    for (const auto id : operation.reads()) missing[index_of(id)] = true;
  }
  std::reverse(replayed.begin(), replayed.end());
  return replayed;
}

}  // namespace troupe::model
