#include "model/shard/unit_groups.h"

#include <fmt/format.h>

#include <algorithm>

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

std::vector<std::int32_t> UnitGroups::of_units() const {
  std::vector<std::int32_t> groups;
  for (const std::size_t group : of_unit_)
    groups.push_back(group == kNone ? kernels::kNoGroup : static_cast<std::int32_t>(group));
  return groups;
}

std::vector<kernels::ClipGroup> UnitGroups::clip_groups(std::span<const std::size_t> updated) const {
  std::vector<kernels::ClipGroup> groups;
  for (const Group& group : groups_)
    groups.push_back({.limit = group.options.clip_grad_norm, .clip_set = static_cast<std::int32_t>(group.clip_set)});
  for (const std::size_t g : updated) groups[g].is_updated = 1;
  return groups;
}

std::vector<float> UnitGroups::clip_factors(std::span<const std::size_t> updated,
                                            std::span<const double> squares) const {
  const auto groups = clip_groups(updated);
  const auto count = static_cast<std::int32_t>(groups.size());
  std::vector<float> factors;
  for (std::int32_t g = 0; g < count; ++g)
    factors.push_back(kernels::clip_factor_of(g, groups.data(), count, squares.data()));
  return factors;
}

}  // namespace troupe::model
