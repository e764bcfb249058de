#include "workers/inference/policy/metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "workers/inference/policy/json_fields.h"

namespace troupe::workers {

namespace {

using Json = JsonFields::Json;

struct Statistic {
  const char* name;
  std::vector<double> FeatureStatistics::*values;
};
constexpr std::array<Statistic, 6> kStatistics = {{{"min", &FeatureStatistics::min},
                                                   {"max", &FeatureStatistics::max},
                                                   {"mean", &FeatureStatistics::mean},
                                                   {"std", &FeatureStatistics::std},
                                                   {"q01", &FeatureStatistics::q01},
                                                   {"q99", &FeatureStatistics::q99}}};

Result<std::vector<double>> numbers(const Json& list, const std::string& where) {
  std::vector<double> out;
  for (const Json& value : list) {
    if (!value.is_number() || !std::isfinite(value.get<double>())) {
      return Error{Errc::invalid_argument, fmt::format("{} holds {}; wanted finite numbers", where, value.dump())};
    }
    out.push_back(value.get<double>());
  }
  return out;
}

/// Statistics of one key: each list is [dim] or [horizon][dim], all alike.
Result<std::vector<FeatureStatistics>> read_statistics(const Json& json, const std::string& where) {
  if (!json.is_object()) return Error{Errc::invalid_argument, where + " is no object of statistics"};
  std::vector<FeatureStatistics> steps;
  std::size_t width = 0;
  for (const Statistic& statistic : kStatistics) {
    const auto it = json.find(statistic.name);
    if (it == json.end() || it->is_null()) continue;
    const std::string place = fmt::format("{}.{}", where, statistic.name);
    if (!it->is_array() || it->empty()) return Error{Errc::invalid_argument, place + " is no list of numbers"};
    const bool per_step = it->front().is_array();
    const std::size_t rows = per_step ? it->size() : 1;
    if (steps.empty()) steps.resize(rows);
    for (std::size_t row = 0; row < rows && rows == steps.size(); ++row) {
      TROUPE_ASSIGN(std::vector<double> values, numbers(per_step ? (*it)[row] : *it, place));
      if (width == 0) width = values.size();
      if (values.size() != width || width == 0) {
        return Error{Errc::invalid_argument, fmt::format("{} has {} values where the key's other statistics have {}",
                                                         place, values.size(), width)};
      }
      steps[row].*statistic.values = std::move(values);
    }
    if (rows != steps.size()) {
      return Error{Errc::invalid_argument,
                   fmt::format("{} has {} steps where the key's other statistics have {}", place, rows, steps.size())};
    }
  }
  if (steps.empty()) return Error{Errc::invalid_argument, where + " has none of min, max, mean, std, q01, q99"};
  return steps;
}

std::int64_t width_of(const FeatureStatistics& s) {
  std::size_t width = 0;
  for (const Statistic& statistic : kStatistics) width = std::max(width, (s.*statistic.values).size());
  return static_cast<std::int64_t>(width);
}

Result<std::vector<MetadataKey>> read_keys(const JsonFields& section, const std::string& where) {
  std::vector<MetadataKey> keys;
  TROUPE_TRY(section.done());
  for (const auto& [name, value] : section.json().items()) {
    MetadataKey key{.name = name};
    TROUPE_ASSIGN(key.statistics, read_statistics(value, fmt::format("{}.{}", where, name)));
    key.width = width_of(key.statistics.front());
    keys.push_back(std::move(key));
  }
  return keys;
}

Result<std::string> pick_tag(const Json& json, const std::string& path, const std::string& tag) {
  std::string tags;
  for (const auto& [name, value] : json.items()) tags += (tags.empty() ? "" : ", ") + name;
  if (tag.empty() && json.size() == 1) return json.begin().key();
  if (!tag.empty() && json.contains(tag)) return tag;
  if (json.empty()) return Error{Errc::invalid_argument, fmt::format("{}: no embodiment", path)};
  return Error{Errc::invalid_argument,
               tag.empty() ? fmt::format("{}: has several embodiments ({}); name one with --embodiment", path, tags)
                           : fmt::format("{}: has no embodiment '{}'; it has {}", path, tag, tags)};
}

Result<void> replace(const FeatureStatistics& all, const std::vector<std::string>& names, const char* section,
                     const std::string& path, std::vector<MetadataKey>& keys) {
  std::size_t at = 0;
  for (const std::string& name : names) {
    const auto it = std::find_if(keys.begin(), keys.end(), [&](const MetadataKey& key) { return key.name == name; });
    TROUPE_CHECK(it != keys.end(), "the key was found in the metadata");
    const std::size_t end = at + static_cast<std::size_t>(it->width);
    FeatureStatistics slice;
    for (const Statistic& statistic : kStatistics) {
      const std::vector<double>& values = all.*statistic.values;
      if (values.empty()) continue;
      if (values.size() < end) {
        return Error{Errc::invalid_argument, fmt::format("{}: norm_stats.{}.{} has {} values; key '{}' is [{}, {})",
                                                         path, section, statistic.name, values.size(), name, at, end)};
      }
      (slice.*statistic.values)
          .assign(values.begin() + static_cast<std::ptrdiff_t>(at), values.begin() + static_cast<std::ptrdiff_t>(end));
    }
    it->statistics = {std::move(slice)};
    at = end;
  }
  return {};
}

}  // namespace

const MetadataKey* find_key(const std::vector<MetadataKey>& keys, const std::string& name) {
  const auto it = std::find_if(keys.begin(), keys.end(), [&](const MetadataKey& key) { return key.name == name; });
  return it == keys.end() ? nullptr : &*it;
}

Result<EmbodimentMetadata> parse_metadata(const std::string& text, const std::string& path, const std::string& tag) {
  TROUPE_ASSIGN(const Json json, parse_json_object(text, path));
  EmbodimentMetadata out;
  TROUPE_ASSIGN(out.tag, pick_tag(json, path, tag));
  JsonFields root(json, path + ":");
  JsonFields embodiment = root.object(out.tag);
  JsonFields statistics = embodiment.object("statistics");
  JsonFields modalities = embodiment.object("modalities");
  TROUPE_TRY(embodiment.done());
  TROUPE_TRY(statistics.done());
  TROUPE_TRY(modalities.done());
  const std::string where = fmt::format("{}: {}.statistics", path, out.tag);
  if (!statistics.has("action")) return Error{Errc::invalid_argument, where + ".action is missing"};
  TROUPE_ASSIGN(out.state, read_keys(statistics.object("state"), where + ".state"));
  TROUPE_ASSIGN(out.action, read_keys(statistics.object("action"), where + ".action"));
  JsonFields video = modalities.object("video");
  TROUPE_TRY(video.done());
  for (const auto& [name, value] : video.json().items()) out.views.push_back(name);
  return out;
}

Result<NormStats> parse_norm_stats(const std::string& text, const std::string& path) {
  TROUPE_ASSIGN(const Json json, parse_json_object(text, path));
  JsonFields root(json, path + ":");
  if (!root.has("norm_stats")) return Error{Errc::invalid_argument, fmt::format("{}: has no norm_stats", path)};
  JsonFields stats = root.object("norm_stats");
  TROUPE_TRY(stats.done());
  NormStats out;
  for (const auto& [section, target] : {std::pair{"state", &out.state}, std::pair{"actions", &out.actions}}) {
    const std::string where = fmt::format("{}: norm_stats.{}", path, section);
    if (!stats.has(section)) return Error{Errc::invalid_argument, where + " is missing"};
    TROUPE_ASSIGN(const auto steps, read_statistics(stats.json()[section], where));
    if (steps.size() != 1) return Error{Errc::invalid_argument, where + " has statistics of several steps"};
    *target = steps.front();
  }
  return out;
}

Result<void> use_norm_stats(const NormStats& stats, const std::vector<std::string>& state_keys,
                            const std::vector<std::string>& action_keys, const std::string& path,
                            EmbodimentMetadata& metadata) {
  TROUPE_TRY(replace(stats.state, state_keys, "state", path, metadata.state));
  return replace(stats.actions, action_keys, "actions", path, metadata.action);
}

}  // namespace troupe::workers
