#include "model/program/pass.h"

#include "model/program/memory_plan.h"

namespace troupe::model {

Pass make_pass(const Graph& graph, const std::vector<std::size_t>& operations, const std::vector<PlacedValue>& fixed) {
  Pass pass;
  std::vector<Lifetime> lifetimes(graph.values().size(), Lifetime{0, -1, -1});
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const auto& operation = *graph.operations()[operations[i]];
    pass.operations.push_back(&operation);
    for (const auto* ids : {&operation.reads(), &operation.writes()}) {
      for (const auto id : *ids) {
        auto& lifetime = lifetimes[index_of(graph.memory_of(id))];
        lifetime.last = static_cast<std::int64_t>(i);
        if (lifetime.first < 0) lifetime.first = lifetime.last;
      }
    }
  }
  std::vector<bool> is_fixed(graph.values().size(), false);
  for (const auto& value : fixed) {
    is_fixed[index_of(value.id)] = true;
    pass.placed.push_back(value);
  }
  std::vector<Lifetime> planned;
  std::vector<ValueId> ids;
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    const auto& value = graph.values()[i];
    if (is_fixed[i] || lifetimes[i].first < 0 || value.role != ValueRole::intermediate) continue;
    planned.push_back({value.bytes(), lifetimes[i].first, lifetimes[i].last});
    ids.push_back(static_cast<ValueId>(i));
  }
  const auto plan = plan_memory(planned);
  for (std::size_t i = 0; i < ids.size(); ++i)
    pass.placed.push_back({ids[i], PlannedArena::workspace, plan.offsets[i]});
  pass.workspace_bytes = plan.bytes;
  return pass;
}

}  // namespace troupe::model
