#include "model/program/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace troupe::model {
namespace {

std::int64_t aligned(std::int64_t bytes) { return (bytes + kPlanAlignment - 1) / kPlanAlignment * kPlanAlignment; }

bool meet(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

}  // namespace

MemoryPlan plan_memory(std::span<const Lifetime> lifetimes) {
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  MemoryPlan plan{std::vector<std::int64_t>(lifetimes.size(), 0), 0};
  /// placed so far, by offset
  std::vector<std::size_t> placed;
  for (const auto i : order) {
    const auto size = aligned(lifetimes[i].bytes);
    std::int64_t offset = 0;
    for (const auto j : placed) {
      if (!meet(lifetimes[i], lifetimes[j])) continue;
      if (plan.offsets[j] - offset >= size) break;
      offset = std::max(offset, plan.offsets[j] + aligned(lifetimes[j].bytes));
    }
    plan.offsets[i] = offset;
    plan.bytes = std::max(plan.bytes, offset + size);
    const auto behind = std::upper_bound(placed.begin(), placed.end(), offset,
                                         [&](std::int64_t at, std::size_t j) { return at < plan.offsets[j]; });
    placed.insert(behind, i);
  }
  return plan;
}

}  // namespace troupe::model
