#include "workers/inference/policy/policy_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "configs/validate.h"

namespace troupe::workers {

namespace {

/// Which of the six statistics a mode reads.
bool has_statistics(NormalizationMode mode, const FeatureStatistics& s, std::size_t width) {
  switch (mode) {
    case NormalizationMode::q99:
      return s.q01.size() == width && s.q99.size() == width;
    case NormalizationMode::mean_std:
      return s.mean.size() == width && s.std.size() == width;
    case NormalizationMode::min_max:
    case NormalizationMode::scale:
    case NormalizationMode::binary:
      return s.min.size() == width && s.max.size() == width;
  }
  return false;
}

void check_keys(const char* section, const std::vector<PolicyKey>& keys, std::int64_t limit, std::int64_t horizon,
                std::vector<std::string>& wrong) {
  std::int64_t width = 0;
  for (const PolicyKey& key : keys) {
    width += key.width;
    if (key.width < 1) wrong.push_back(fmt::format("{}.{} has {} values", section, key.name, key.width));
    const auto steps = static_cast<std::int64_t>(key.statistics.size());
    if (steps != 1 && steps != horizon) {
      wrong.push_back(fmt::format("{}.{} has statistics of {} steps; wanted 1 or the horizon {}", section, key.name,
                                  steps, horizon));
    }
    for (const FeatureStatistics& s : key.statistics) {
      if (has_statistics(key.mode, s, static_cast<std::size_t>(key.width))) continue;
      wrong.push_back(fmt::format("{}.{} lacks the {} statistics of its {} values", section, key.name,
                                  key.mode == NormalizationMode::q99        ? "q01 and q99"
                                  : key.mode == NormalizationMode::mean_std ? "mean and std"
                                                                            : "min and max",
                                  key.width));
      break;
    }
  }
  if (width > limit) {
    wrong.push_back(fmt::format("the {} keys have {} values together; the model takes {}", section, width, limit));
  }
}

}  // namespace

Result<void> check_policy_spec(const PolicySpec& spec, const std::string& where) {
  std::vector<std::string> wrong;
  // The rules of a job's model and data are the rules here; every error comes with the key it is about.
  Diagnostics errors(where);
  const OriginMap origins;
  Rules rules(origins, errors);
  DataConfig data;
  data.sets = {{where, 1.0}};
  data.embodiment = spec.embodiment;
  data.window = spec.window;
  data.image = spec.image;
  validate_model(spec.model, rules);
  validate_data(data, rules);
  validate_window(data, spec.model, rules);
  for (const std::string& text : errors.finish()) wrong.push_back(text);

  if (spec.action.empty()) wrong.emplace_back("there is no action key");
  check_keys("state", spec.state, spec.model.dit.max_state_dim, 1, wrong);
  check_keys("action", spec.action, spec.model.dit.action_dim, spec.window.action_horizon, wrong);
  for (const PolicyKey& key : spec.action) {
    if (!key.relative) continue;
    bool found = false;
    for (const PolicyKey& s : spec.state) found |= s.name == key.name && s.width == key.width;
    if (!found) {
      wrong.push_back(
          fmt::format("action.{} is relative, and no state key of that name has its {} values", key.name, key.width));
    }
  }
  if (wrong.empty()) return {};
  return Error{Errc::invalid_argument, fmt::format("{}: {}", where, fmt::join(wrong, "\n  "))};
}

}  // namespace troupe::workers
