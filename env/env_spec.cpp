#include "env/env_spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace troupe::env {

namespace {

Result<void> refuse(const std::string& key, const std::string& why) { return invalid_argument(key + " " + why); }

/// Bytes of a field of which there may be thousands in a block; an image of 8192 x 8192 is smaller.
constexpr std::int64_t kMostFieldBytes = std::int64_t{1} << 30;

Result<void> check_unique(const std::vector<std::string>& names, const std::string& key) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", key, i);
    if (names[i].empty()) return refuse(at, "is empty; wanted a name");
    if (!seen.insert(names[i]).second) return refuse(at, fmt::format("is '{}' for the second time", names[i]));
  }
  return {};
}

Result<void> check_field(const EnvField& field, const std::string& key) {
  std::int64_t bytes = env_dtype_bytes(field.dtype);
  for (std::size_t i = 0; i < field.shape.size(); ++i) {
    const std::int64_t size = field.shape[i];
    if (size < 1 || size > kMostFieldBytes / bytes) {
      return refuse(fmt::format("{}.shape[{}]", key, i),
                    fmt::format("is {}; wanted 1 or more, and at most {} bytes of a field", size, kMostFieldBytes));
    }
    bytes *= size;
  }
  if (std::isnan(field.low) || std::isnan(field.high) || field.low > field.high)
    return refuse(key + ".low", fmt::format("is {} with high {}; wanted a range", field.low, field.high));
  return {};
}

/// What the field's reader asks of it.
Result<void> check_reader(const EnvField& field, const ActionSpace& action, const std::string& key) {
  const auto wants = [&](const std::string& what) {
    return refuse(key + ".reader", fmt::format("is {}, which wants {}; the field is {} [{}]", enum_name(field.reader),
                                               what, enum_name(field.dtype), fmt::join(field.shape, ",")));
  };
  if (field.reader == EnvReader::text && (field.dtype != EnvDType::u8 || field.shape.size() != 1))
    return wants("u8 [longest text]");
  if (field.reader != EnvReader::action_mask) return {};
  if (!action.is_discrete())
    return refuse(key + ".reader", "is action_mask; actions of numbers have no choices that could be masked");
  if (field.dtype == EnvDType::f64 || field.shape != std::vector<std::int64_t>{action.choices})
    return wants(fmt::format("u8 or f32 [{}], one for each choice", action.choices));
  return {};
}

Result<void> check_readers(const EnvSpec& spec) {
  const auto count = [&](EnvReader reader) {
    return std::count_if(spec.observation.begin(), spec.observation.end(),
                         [&](const EnvField& field) { return field.reader == reader; });
  };
  for (std::size_t i = 0; i < spec.observation.size(); ++i)
    TROUPE_TRY(check_reader(spec.observation[i], spec.action, fmt::format("observation[{}]", i)));
  if (count(EnvReader::action_mask) > 1) return refuse("observation", "has more than one action_mask");
  if (count(EnvReader::policy) == 0) return refuse("observation", "has no field that the policy reads");
  return {};
}

Result<void> check_action(const ActionSpace& action) {
  if (action.choices < 0) return refuse("action.choices", fmt::format("is {}; wanted 1 or more", action.choices));
  if (action.is_discrete()) {
    if (action.size == 1) return {};
    return refuse("action.size", fmt::format("is {}; a discrete action is one number", action.size));
  }
  if (action.size < 1) return refuse("action.size", fmt::format("is {}; wanted 1 or more", action.size));
  const auto size = static_cast<std::size_t>(action.size);
  if (action.low.size() != size || action.high.size() != size) {
    return refuse("action.low", fmt::format("has {} numbers and high {}; the action has {}", action.low.size(),
                                            action.high.size(), size));
  }
  for (std::size_t i = 0; i < size; ++i) {
    if (action.low[i] <= action.high[i]) continue;  // false for NaN
    return refuse(fmt::format("action.low[{}]", i),
                  fmt::format("is {} with high {}; wanted a range", action.low[i], action.high[i]));
  }
  return {};
}

}  // namespace

Result<void> check_env_spec(const EnvSpec& spec) {
  if (spec.id.empty()) return refuse("id", "is empty; wanted the environment's name");
  if (spec.observation.empty()) return refuse("observation", "is empty; an environment shows something");
  std::vector<std::string> names;
  for (const EnvField& field : spec.observation) names.push_back(field.name);
  TROUPE_TRY(check_unique(names, "observation"));
  for (std::size_t i = 0; i < spec.observation.size(); ++i)
    TROUPE_TRY(check_field(spec.observation[i], fmt::format("observation[{}]", i)));
  TROUPE_TRY(check_action(spec.action));
  TROUPE_TRY(check_readers(spec));
  TROUPE_TRY(check_unique(spec.info, "info"));
  TROUPE_TRY(check_unique(spec.cameras, "cameras"));
  if (spec.max_steps < 0) return refuse("max_steps", fmt::format("is {}; wanted 0 or more", spec.max_steps));
  if (!std::isfinite(spec.control_hz) || spec.control_hz < 0)
    return refuse("control_hz", fmt::format("is {}; wanted steps a second, 0: no unit of time", spec.control_hz));
  if (spec.agents < 1) return refuse("agents", fmt::format("is {}; wanted 1 or more", spec.agents));
  if (spec.frame_skip < 1) return refuse("frame_skip", fmt::format("is {}; wanted 1 or more", spec.frame_skip));
  return {};
}

}  // namespace troupe::env
