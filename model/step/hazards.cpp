#include "model/step/hazards.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/step/happens_before.h"
#include "model/step/step_text.h"

namespace troupe::model {

std::vector<Hazard> find_hazards(std::span<const Op> operations) {
  const auto clocks = clocks_of(operations);
  struct Touch {
    int operation;
    const Access* access;
  };
  std::array<std::vector<Touch>, kArenas> touches;
  std::vector<Hazard> hazards;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    for (const Access& access : operations[i].accesses) {
      auto& earlier = touches[static_cast<std::size_t>(access.range.arena)];
      for (const Touch& touch : earlier) {
        if (touch.operation == static_cast<int>(i) || (!access.writes && !touch.access->writes)) continue;
        const Op& other = operations[static_cast<std::size_t>(touch.operation)];
        if (is_before(other, touch.operation, clocks[i]) || !overlap(access.range, touch.access->range)) continue;
        hazards.push_back({touch.operation, static_cast<int>(i), access.range});
      }
      earlier.push_back({static_cast<int>(i), &access});
    }
  }
  return hazards;
}

std::vector<std::pair<int, int>> implied_waits(std::span<const Op> operations) {
  std::vector<Op> without(operations.begin(), operations.end());
  std::vector<std::pair<int, int>> implied;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const auto& waits = operations[i].waits;
    for (std::size_t w = 0; w < waits.size(); ++w) {
      without[i].waits.erase(without[i].waits.begin() + static_cast<std::ptrdiff_t>(w));
      const auto clocks = clocks_of(std::span(without).first(i + 1));
      if (is_before(operations[static_cast<std::size_t>(waits[w])], waits[w], clocks.back()))
        implied.emplace_back(static_cast<int>(i), static_cast<int>(w));
      without[i].waits = waits;
    }
  }
  return implied;
}

std::string to_string(const Hazard& hazard, std::span<const Op> operations, const ArenaPlan& plan) {
  const auto name = [&](int number) {
    return fmt::format("{} ({})", title(operations[static_cast<std::size_t>(number)], plan), number);
  };
  return fmt::format("{} and {} both touch {} [{}, {})", name(hazard.first), name(hazard.second),
                     enum_name(hazard.range.arena), hazard.range.begin, hazard.range.begin + hazard.range.bytes);
}

}  // namespace troupe::model
