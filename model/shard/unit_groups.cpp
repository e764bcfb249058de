#include "model/shard/unit_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace troupe::model {

UnitGroups::UnitGroups(const std::vector<UnitSpec>& units, const GroupOptions& defaults,
                       const std::map<std::string, GroupOptions>& options) {
  for (std::size_t u = 0; u < units.size(); ++u) {
    of_unit_.push_back(kNone);
    if (!units[u].trainable) continue;
    std::size_t group = find(units[u].group);
    if (group == kNone) {
      group = groups_.size();
      names_.push_back(units[u].group);
      groups_.emplace_back();
    }
    of_unit_[u] = group;
    groups_[group].units.push_back(u);
  }
  for (const auto& [name, unused] : options) {
    TROUPE_CHECK(find(name) != kNone, fmt::format("options for group '{}', which no trainable unit names", name));
  }

  std::map<std::string, std::size_t> sets;  // by a word that no two sets share
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const auto own = options.find(names_[g]);
    groups_[g].options = own == options.end() ? defaults : own->second;
    const std::string& with = groups_[g].options.clip_with;
    const std::string word = own == options.end() ? "default" : with.empty() ? "group " + names_[g] : "set " + with;
    const auto [set, is_new] = sets.try_emplace(word, g);
    TROUPE_CHECK(
        is_new || groups_[set->second].options.clip_grad_norm == groups_[g].options.clip_grad_norm,
        fmt::format("groups '{}' and '{}' are clipped together with different limits", names_[set->second], names_[g]));
    groups_[g].clip_set = set->second;  // a set has the number of its first group
  }
}

std::size_t UnitGroups::find(const std::string& name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  return found == names_.end() ? kNone : static_cast<std::size_t>(found - names_.begin());
}

std::vector<float> UnitGroups::clip_factors(std::span<const std::size_t> updated,
                                            std::span<const double> squares) const {
  std::vector<double> sums(groups_.size(), 0.0);
  for (const std::size_t g : updated) sums[groups_[g].clip_set] += squares[g];
  std::vector<float> factors(groups_.size(), 1.0f);
  for (const std::size_t g : updated) {
    factors[g] = clip_factor(rounded_norm(sums[groups_[g].clip_set]), groups_[g].options.clip_grad_norm);
  }
  return factors;
}

double rounded_norm(double squares) { return static_cast<double>(static_cast<float>(std::sqrt(squares))); }

}  // namespace troupe::model
