#include "model/shard/objective_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace troupe::model {
namespace {

bool same_layout(const UnitSpec& a, const UnitSpec& b) {
  const auto same = [](const ParamSpec& p, const ParamSpec& q) { return p.name == q.name && p.shape == q.shape; };
  return a.name == b.name && std::equal(a.params.begin(), a.params.end(), b.params.begin(), b.params.end(), same) &&
         std::equal(a.replicated.begin(), a.replicated.end(), b.replicated.begin(), b.replicated.end(), same);
}

}  // namespace

ObjectivePlan::ObjectivePlan(const std::vector<UnitSpec>& chain, const Network& objective, int param_slots,
                             int grad_slots)
    : network_(objective), param_slots_(param_slots), grad_slots_(grad_slots) {
  const auto& units = objective.units();
  TROUPE_CHECK(
      units.size() == chain.size(),
      fmt::format("an objective has the engine's units: {} where the engine has {}", units.size(), chain.size()));
  for (std::size_t u = 0; u < chain.size(); ++u) {
    TROUPE_CHECK(same_layout(units[u], chain[u]),
                 fmt::format("an objective has the engine's units: '{}' is not the engine's '{}'", units[u].name,
                             chain[u].name));
    trains_.push_back(chain[u].trainable && units[u].trainable);
  }
}

const ManualBackward* ObjectivePlan::manual_backward(bool allowed) const {
  if (!allowed || param_slots_ < static_cast<int>(trains_.size())) return nullptr;
  if (grad_slots_ < std::count(trains_.begin(), trains_.end(), true)) return nullptr;
  return network_.manual_backward();
}

}  // namespace troupe::model
