#include "workers/inference/policy/env_columns.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/lerobot/image_feature.h"
#include "data/lerobot/modality.h"

namespace troupe::workers {

namespace {

Result<std::vector<EnvColumns>> find_columns(const std::vector<PolicyKey>& keys, const PolicySpec& policy,
                                             const std::string& section, std::int64_t width) {
  const bool is_state = section == "state";
  const bool is_whole = (is_state ? policy.embodiment.state_keys : policy.embodiment.action_keys).empty();
  const std::string column = is_state ? "observation.state" : "action";
  std::vector<EnvColumns> found;
  for (const PolicyKey& key : keys) {
    ColumnSlice slice{.column = column};
    const auto named = policy.embodiment.slices.find(fmt::format("{}.{}", section, key.name));
    if (named != policy.embodiment.slices.end()) {
      TROUPE_ASSIGN(slice, parse_column_slice(named->second));
    } else if (!is_whole) {
      return invalid_argument(
          fmt::format("nothing says which columns of {} are the policy's {} '{}'; name them in the "
                      "embodiment's slices, such as {}.{}: \"{}[0:{}]\"",
                      column, section, key.name, section, key.name, column, key.width));
    }
    if (slice.end < 0) slice.end = width;
    if (slice.column != column || slice.end > width || slice.end - slice.start != key.width) {
      return invalid_argument(
          fmt::format("the policy's {} '{}' is {}[{}:{}] with {} numbers; the environment has {}[0:{}]", section,
                      key.name, slice.column, slice.start, slice.end, key.width, column, width));
    }
    found.push_back({key.name, slice.start, key.width});
  }
  return found;
}

}  // namespace

Result<std::vector<EnvColumns>> state_columns(const PolicySpec& policy, std::int64_t width) {
  return find_columns(policy.state, policy, "state", width);
}

Result<std::vector<EnvColumns>> action_columns(const PolicySpec& policy, const EnvSpec& env) {
  TROUPE_ASSIGN(std::vector<EnvColumns> found, find_columns(policy.action, policy, "action", env.action.size));
  std::vector<int> taken(static_cast<std::size_t>(env.action.size), 0);
  for (const EnvColumns& key : found) {
    for (std::int64_t i = key.first; i < key.first + key.width; ++i) ++taken[static_cast<std::size_t>(i)];
  }
  if (std::all_of(taken.begin(), taken.end(), [](int count) { return count == 1; })) return found;
  return invalid_argument(fmt::format("{} takes {} numbers; the policy's action keys do not give each of them once",
                                      env.id, env.action.size));
}

std::string camera_of(const PolicySpec& policy, const std::string& view) {
  const auto named = policy.embodiment.cameras.find(view);
  return camera_of_feature(named != policy.embodiment.cameras.end() ? named->second : view);
}

void place_actions(const ActionChunk& chunk, std::span<const EnvColumns> keys, std::int64_t rows, std::int64_t size,
                   float* out) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* from = chunk.values.data() + row * chunk.width;
    for (const EnvColumns& key : keys) {
      std::copy_n(from, key.width, out + row * size + key.first);
      from += key.width;
    }
  }
}

}  // namespace troupe::workers
