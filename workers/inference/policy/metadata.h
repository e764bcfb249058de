#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "data/statistics/statistics.h"

namespace troupe::workers {

/// One key of a metadata file: its width and statistics, one set or one for each step of a horizon.
struct MetadataKey {
  std::string name{};
  std::int64_t width = 0;
  std::vector<FeatureStatistics> statistics{};
};

/// The key of that name, or null.
const MetadataKey* find_key(const std::vector<MetadataKey>& keys, const std::string& name);

/// What GEAR's experiment metadata says of one embodiment, in the order of the file.
struct EmbodimentMetadata {
  std::string tag;
  std::vector<std::string> views{};
  std::vector<MetadataKey> state{}, action{};
};

/// Reads {tag: {statistics: {state, action}, modalities}}. `tag` picks the embodiment; empty: the only one.
/// Statistics may be [dim] or [horizon][dim]; lists that a key lacks stay empty. Views are empty where the file names
/// none. Errors: invalid_argument (not that form, several tags and none named, an unknown tag, uneven lists), naming
/// the file and the key.
Result<EmbodimentMetadata> parse_metadata(const std::string& text, const std::string& path, const std::string& tag);

/// OpenPI's {"norm_stats": {"state": {mean, std, q01, q99}, "actions": {...}}}: statistics of the concatenated vectors;
/// the lists may be longer than what is used. Errors: invalid_argument.
struct NormStats {
  FeatureStatistics state, actions;
};
Result<NormStats> parse_norm_stats(const std::string& text, const std::string& path);

/// Replaces the statistics of `metadata` by slices of the concatenated ones, in the order of the keys given. Keys of no
/// list keep theirs. Errors: invalid_argument when the lists are shorter than the keys.
Result<void> use_norm_stats(const NormStats& stats, const std::vector<std::string>& state_keys,
                            const std::vector<std::string>& action_keys, const std::string& path,
                            EmbodimentMetadata& metadata);

}  // namespace troupe::workers
