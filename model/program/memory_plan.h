#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/namespaces.h"

namespace troupe::model {

/// Memory that is used from operation `first` to operation `last` of a pass, both included.
struct Lifetime {
  std::int64_t bytes = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;
};

/// Where each lifetime lies in one arena.
struct MemoryPlan {
  /// bytes from the arena's begin, multiples of kPlanAlignment; in the order of the lifetimes
  std::vector<std::int64_t> offsets;
  /// size of the arena: the high-water mark
  std::int64_t bytes = 0;
};

/// A cache line, and a vector.
inline constexpr std::int64_t kPlanAlignment = 64;

/// Offsets such that no two lifetimes that meet in time meet in memory: largest first, each at the lowest place that is
/// free (best known greedy order, arXiv:2001.03288 section 5.2). Pure and deterministic; O(n^2).
MemoryPlan plan_memory(std::span<const Lifetime> lifetimes);

}  // namespace troupe::model
