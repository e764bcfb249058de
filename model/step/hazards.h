#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/step/op.h"

namespace troupe::model {

/// Two operations that touch one buffer, at least one of which writes it, and that nothing orders.
struct Hazard {
  int first = 0, second = 0;
  ArenaRange range;
};

/// All of them, by vector clocks over streams and waits. O(n^2) in the operations that touch one arena.
std::vector<Hazard> find_hazards(std::span<const Op> operations);

/// Waits without which what they wait for would still be done first, as (operation, place among its waits).
std::vector<std::pair<int, int>> implied_waits(std::span<const Op> operations);

/// "backward blocks.3 (12) and gather blocks.1 (15) both touch slots [0, 4096)"
std::string to_string(const Hazard& hazard, std::span<const Op> operations, const ArenaPlan& plan);

}  // namespace troupe::model
