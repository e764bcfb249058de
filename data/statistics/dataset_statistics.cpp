#include "data/statistics/dataset_statistics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "data/lerobot/file_checks.h"
#include "data/lerobot/json_text.h"

namespace troupe::data {

namespace {

using Json = nlohmann::ordered_json;
using StatisticsFile = std::map<std::string, FeatureStatistics>;

FeatureStatistics parse_feature(const Json& json) {
  const auto values = [&](const char* name) {
    std::vector<double> out;
    if (!json.is_object() || !json.contains(name)) return out;
    const Json& list = json[name];
    if (list.is_number()) out.push_back(list.get<double>());
    if (!list.is_array()) return out;
    for (const Json& v : list) {
      if (v.is_array()) return std::vector<double>{};  // nested lists are image statistics
      out.push_back(v.is_number() ? v.get<double>() : std::numeric_limits<double>::quiet_NaN());
    }
    return out;
  };
  return {values("min"), values("max"), values("mean"), values("std"), values("q01"), values("q99")};
}

/// The key's slice of its column's statistics, or empty when the file lacks something.
FeatureStatistics slice_of(const StatisticsFile& file, const VectorKey& key, std::size_t column_width) {
  const auto it = file.find(key.column);
  if (it == file.end() || !it->second.is_complete(column_width)) return {};
  return it->second.slice(static_cast<std::size_t>(key.start), static_cast<std::size_t>(key.end));
}

/// What is missing in the files and has to be computed, and where the results go.
class Missing {
 public:
  explicit Missing(std::int64_t horizon) { plan_.horizon = horizon; }

  void add_column(const VectorKey& key, const LerobotFeature& feature, FeatureStatistics* out) {
    auto it = std::find_if(plan_.columns.begin(), plan_.columns.end(),
                           [&](const WantedColumn& c) { return c.name == key.column; });
    if (it == plan_.columns.end()) {
      plan_.columns.push_back({key.column, static_cast<std::size_t>(feature.width()), feature.dtype == "float32"});
      it = plan_.columns.end() - 1;
    }
    columns_.push_back({static_cast<std::size_t>(it - plan_.columns.begin()), key, out});
  }
  void add_relative(const ActionKey& key, FeatureStatistics* out) {
    plan_.relative.push_back({key.key, key.reference});
    relative_.push_back(out);
  }

  Result<void> compute(const TableSource& tables) {
    if (columns_.empty() && relative_.empty()) return {};
    TROUPE_ASSIGN(const TableStatistics found, table_statistics(tables, plan_));
    for (const Slice& s : columns_) {
      *s.out =
          found.columns[s.column].slice(static_cast<std::size_t>(s.key.start), static_cast<std::size_t>(s.key.end));
    }
    for (std::size_t i = 0; i < relative_.size(); ++i) *relative_[i] = found.relative[i].pooled;
    return {};
  }

 private:
  struct Slice {
    std::size_t column;  ///< of the plan
    VectorKey key;
    FeatureStatistics* out;
  };
  StatisticsPlan plan_;
  std::vector<Slice> columns_;
  std::vector<FeatureStatistics*> relative_;
};

/// D12: a column whose statistics are there but cannot be used.
void warn_incomplete(const std::string& path, const std::string& column, const StatisticsFile& file, std::size_t width,
                     LoadedStatistics& out) {
  const auto it = file.find(column);
  if (it == file.end() || it->second.is_complete(width)) return;
  const FeatureStatistics& s = it->second;
  bool damaged = false;
  for (const auto* v : {&s.min, &s.max, &s.mean, &s.std, &s.q01, &s.q99}) {
    damaged = damaged || (!v->empty() && v->size() != width) ||
              std::any_of(v->begin(), v->end(), [](double x) { return !std::isfinite(x); });
  }
  if (!damaged) return;  // written without quantiles, as LeRobot v2 does
  const auto same = [&](const DatasetProblem& p) {
    return p.path == path && p.text.find("'" + column + "'") != std::string::npos;
  };
  if (std::any_of(out.warnings.begin(), out.warnings.end(), same)) return;
  out.warnings.push_back({"D12", path,
                          fmt::format("{}: '{}' holds no {} finite values for every statistic; they are computed "
                                      "instead (delete the file, then `troupe stats --write-metadata` makes it anew)",
                                      path, column, width)});
}

/// D12: dimensions that q99 leaves as they are.
void warn_constant(const std::string& root, const std::string& name, const FeatureStatistics& s,
                   LoadedStatistics& out) {
  const std::vector<std::size_t> dims = s.constant_dimensions();
  if (!dims.empty()) {
    out.warnings.push_back({"D12", root,
                            fmt::format("{}: {} is constant (q01 = q99) in dimension {}, which q99 only clamps to [-1, "
                                        "1]; leave it out of the embodiment's keys if it says nothing",
                                        root, name, fmt::join(dims, ", "))});
  }
}

std::string action_name(const ActionKey& key) { return (key.relative ? "relative action." : "action.") + key.key.name; }

Json to_json(const FeatureStatistics& s) {
  return {{"max", s.max}, {"min", s.min}, {"mean", s.mean}, {"std", s.std}, {"q01", s.q01}, {"q99", s.q99}};
}

}  // namespace

StatisticsFile read_statistics_file(const std::string& path, std::vector<DatasetProblem>& warnings) {
  StatisticsFile out;
  std::error_code code;
  if (std::filesystem::symlink_status(path, code).type() == std::filesystem::file_type::not_found) return out;
  const auto text = read_text_file(path);
  if (!text) {
    warnings.push_back(
        {"D12", path,
         text.error().message() +
             "; statistics are computed instead (mend or delete the file; `troupe stats --write-metadata` makes it)"});
    return out;
  }
  std::string why;
  try {
    if (const auto json = parse_json<Json>(*text)) {
      for (const auto& [name, value] : json->items()) out[name] = parse_feature(value);
    } else {
      why = json.error().message();
    }
  } catch (const nlohmann::json::exception& e) {
    why = e.what();
  }
  if (!why.empty()) {
    warnings.push_back({"D12", path,
                        fmt::format("{}: {}; statistics are computed instead (mend or delete the file; `troupe stats "
                                    "--write-metadata` makes it)",
                                    path, why)});
  }
  return out;
}

TableSource tables_of(const EpisodeSource& source, std::span<const Episode> episodes) {
  return {.episodes = episodes.size(),
          .rows = [episodes](std::size_t i) { return episodes[i].rows; },
          .read = [&source, episodes](std::size_t i,
                                      const TableColumns& columns) { return source.read_table(episodes[i], columns); }};
}

Result<LoadedStatistics> load_statistics(const EpisodeSource& source, std::span<const Episode> episodes,
                                         std::int64_t horizon) {
  LoadedStatistics out;
  const StatisticsFile absolute = read_statistics_file(source.root() + "/meta/stats.json", out.warnings);
  const StatisticsFile relative =
      read_statistics_file(source.root() + "/meta/relative_stats_dreamzero.json", out.warnings);
  Missing missing(horizon);
  out.keys.state.resize(source.columns.state.size());
  out.keys.action.resize(source.columns.action.size());

  const auto load = [&](const std::string& name, const VectorKey& key, FeatureStatistics* s) {
    const LerobotFeature& feature = *source.info().find(key.column);
    const auto width = static_cast<std::size_t>(feature.width());
    *s = slice_of(absolute, key, width);
    if (s->width() > 0) return;
    warn_incomplete(source.root() + "/meta/stats.json", key.column, absolute, width, out);
    out.computed.push_back(name);
    missing.add_column(key, feature, s);
  };
  for (std::size_t i = 0; i < out.keys.state.size(); ++i)
    load("state." + source.columns.state[i].name, source.columns.state[i], &out.keys.state[i]);
  for (std::size_t i = 0; i < out.keys.action.size(); ++i) {
    const ActionKey& key = source.columns.action[i];
    const std::string name = action_name(key);
    if (!key.relative) {
      load(name, key.key, &out.keys.action[i]);
    } else if (const auto it = relative.find(key.key.name);
               it != relative.end() && it->second.is_complete(key.key.width())) {
      out.keys.action[i] = it->second;
    } else {
      warn_incomplete(source.root() + "/meta/relative_stats_dreamzero.json", key.key.name, relative, key.key.width(),
                      out);
      out.computed.push_back(name);
      missing.add_relative(key, &out.keys.action[i]);
    }
  }
  TROUPE_TRY(missing.compute(tables_of(source, episodes)));

  for (std::size_t i = 0; i < out.keys.state.size(); ++i)
    warn_constant(source.root(), "state." + source.columns.state[i].name, out.keys.state[i], out);
  for (std::size_t i = 0; i < out.keys.action.size(); ++i) {
    const std::string name = action_name(source.columns.action[i]);
    if (out.keys.action[i].width() == 0) {
      return invalid_argument(
          fmt::format("{}: no episode has the {} rows that statistics of {} need", source.root(), horizon, name));
    }
    warn_constant(source.root(), name, out.keys.action[i], out);
  }
  return out;
}

std::string experiment_metadata(const EpisodeSource& source, const KeyStatistics& statistics, const std::string& tag,
                                std::int64_t view_height, std::int64_t view_width) {
  Json stats = {{"state", Json::object()}, {"action", Json::object()}};
  Json modalities = {{"video", Json::object()}, {"state", Json::object()}, {"action", Json::object()}};
  const auto describe = [&](const char* section, const VectorKey& key, const FeatureStatistics& s) {
    stats[section][key.name] = to_json(s);
    modalities[section][key.name] = {
        {"absolute", true}, {"rotation_type", nullptr}, {"shape", Json::array({key.width()})}, {"continuous", true}};
  };
  for (const NamedColumn& view : source.columns.views) {
    modalities["video"][view.name] = {
        {"resolution", Json::array({view_width, view_height})}, {"channels", 3}, {"fps", source.info().fps}};
  }
  for (std::size_t i = 0; i < source.columns.state.size(); ++i)
    describe("state", source.columns.state[i], statistics.state[i]);
  for (std::size_t i = 0; i < source.columns.action.size(); ++i) {
    describe("action", source.columns.action[i].key, statistics.action[i]);
  }
  const Json out = {{tag, {{"embodiment_tag", tag}, {"statistics", stats}, {"modalities", modalities}}}};
  return out.dump(1);
}

}  // namespace troupe::data
