#include "model/shard/update_intervals.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

namespace troupe::model {

namespace {

bool fits(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

}  // namespace

std::vector<UpdateInterval> update_intervals(const FlatLayout& layout, std::int64_t padded, const UpdateRules& rules) {
  std::vector<UpdateInterval> intervals;
  for (const LayoutEntry& entry : layout.entries) {
    const auto fits_name = [&](const std::string& pattern) { return fits(pattern, entry.name); };
    const auto rate = std::find_if(rules.rates.begin(), rules.rates.end(),
                                   [&](const UpdateRules::Rate& rule) { return fits_name(rule.names); });
    const UpdateInterval own{.begin = entry.offset,
                             .end = padded,
                             .decays = std::none_of(rules.no_decay.begin(), rules.no_decay.end(), fits_name),
                             .rate = rate == rules.rates.end() ? 1.0 : rate->factor};
    if (!intervals.empty() && intervals.back().decays == own.decays && intervals.back().rate == own.rate) continue;
    if (!intervals.empty()) intervals.back().end = own.begin;
    intervals.push_back(own);
  }
  if (intervals.empty()) intervals.push_back({.begin = 0, .end = padded});
  return intervals;
}

Result<void> check_update_rules(const std::vector<UnitSpec>& units, const UpdateRules& rules) {
  std::vector<std::string> names;
  for (const UnitSpec& unit : units) {
    if (!unit.trainable) continue;
    for (const ParamSpec& param : unit.params) names.push_back(param.name);
  }
  const auto check = [&](const std::string& key, const std::string& pattern) -> Result<void> {
    if (std::any_of(names.begin(), names.end(), [&](const std::string& name) { return fits(pattern, name); }))
      return {};
    return Error{Errc::invalid_argument,
                 fmt::format("{}: '{}' fits no parameter that this job trains{}", key, pattern,
                             names.empty() ? "" : fmt::format("; one of them is {}", names[names.size() / 2]))};
  };
  for (const std::string& pattern : rules.no_decay) TROUPE_TRY(check("optimizer.no_decay", pattern));
  for (const UpdateRules::Rate& rule : rules.rates) TROUPE_TRY(check("optimizer.rates", rule.names));
  return {};
}

}  // namespace troupe::model
