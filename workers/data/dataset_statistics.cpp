#include "workers/data/dataset_statistics.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "workers/data/lerobot/file_checks.h"

namespace troupe {

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
      if (!v.is_number()) return std::vector<double>{};  // nested lists are image statistics
      out.push_back(v.get<double>());
    }
    return out;
  };
  return {values("min"), values("max"), values("mean"), values("std"), values("q01"), values("q99")};
}

/// Statistics by name; empty when the file is absent, and a warning when it cannot be used.
StatisticsFile read_file(const std::string& path, std::vector<DatasetProblem>& warnings) {
  StatisticsFile out;
  std::error_code code;
  if (std::filesystem::symlink_status(path, code).type() == std::filesystem::file_type::not_found) return out;
  const auto text = read_text_file(path);
  if (!text) {
    warnings.push_back({"D12", path, text.error().message() + "; statistics are computed"});
    return out;
  }
  try {
    const Json json = Json::parse(*text);
    for (const auto& [name, value] : json.items()) out[name] = parse_feature(value);
  } catch (const nlohmann::json::exception& e) {
    warnings.push_back({"D12", path, fmt::format("{}: {}; statistics are computed", path, e.what())});
  }
  return out;
}

/// The key's slice of its column's statistics, or empty when the file lacks something.
FeatureStatistics slice_of(const StatisticsFile& file, const VectorKey& key, std::size_t column_width) {
  const auto it = file.find(key.column);
  if (it == file.end() || !it->second.is_complete(column_width)) return {};
  return it->second.slice(static_cast<std::size_t>(key.start), static_cast<std::size_t>(key.end));
}

/// The vector columns of every episode; read at most once, and only when some statistic is missing.
class Tables {
 public:
  Tables(const EpisodeSource& source, std::span<const Episode> episodes) : source_(source), episodes_(episodes) {}

  Result<const std::vector<EpisodeTable>*> get() {
    if (tables_.empty()) {
      TableColumns wanted;
      wanted.vectors = source_.columns.vector_columns();
      for (const Episode& e : episodes_) {
        TROUPE_ASSIGN(const std::string path, source_.parquet_path(e.index));
        TROUPE_ASSIGN(EpisodeTable table, read_parquet(path, wanted));
        tables_.push_back(std::move(table));
      }
    }
    return &tables_;
  }

 private:
  const EpisodeSource& source_;
  std::span<const Episode> episodes_;
  std::vector<EpisodeTable> tables_;
};

std::vector<double> all_rows(const EpisodeTable& table, const VectorKey& key) {
  std::vector<double> out;
  const VectorColumn& column = table.vectors.at(key.column);
  for (std::int64_t r = 0; r < table.rows; ++r) {
    const auto row = column.row(r).subspan(static_cast<std::size_t>(key.start), key.width());
    out.insert(out.end(), row.begin(), row.end());
  }
  return out;
}

Result<FeatureStatistics> compute_absolute(Tables& tables, const VectorKey& key) {
  TROUPE_ASSIGN(const auto* all, tables.get());
  StatisticsPool pool(key.width());
  for (const EpisodeTable& table : *all) {
    std::vector<double> rows = all_rows(table, key);
    for (double& v : rows) v = static_cast<double>(static_cast<float>(v));
    pool.add(rows);
  }
  return pool.finish();
}

Result<FeatureStatistics> compute_relative(Tables& tables, const ActionKey& key, std::int64_t horizon) {
  TROUPE_ASSIGN(const auto* all, tables.get());
  std::vector<std::vector<double>> kept;
  std::vector<RelativeEpisode> episodes;
  kept.reserve(2 * all->size());
  for (const EpisodeTable& table : *all) {
    kept.push_back(all_rows(table, key.key));
    kept.push_back(all_rows(table, key.reference));
    episodes.push_back({kept[kept.size() - 2], kept.back()});
  }
  return relative_statistics(episodes, key.key.width(), horizon);
}

/// D12: dimensions that q99 leaves as they are.
void warn_constant(const std::string& root, const std::string& name, const FeatureStatistics& s,
                   LoadedStatistics& out) {
  std::string dims;
  for (std::size_t d = 0; d < s.width(); ++d) {
    if (s.q01[d] == s.q99[d]) dims += fmt::format("{}{}", dims.empty() ? "" : ", ", d);
  }
  if (!dims.empty()) {
    out.warnings.push_back(
        {"D12", root, fmt::format("{}: {} is constant (q01 = q99) in dimension {}", root, name, dims)});
  }
}

Json to_json(const FeatureStatistics& s) {
  return {{"max", s.max}, {"min", s.min}, {"mean", s.mean}, {"std", s.std}, {"q01", s.q01}, {"q99", s.q99}};
}

}  // namespace

Result<LoadedStatistics> load_statistics(const EpisodeSource& source, std::span<const Episode> episodes,
                                         std::int64_t horizon) {
  LoadedStatistics out;
  const StatisticsFile absolute = read_file(source.root + "/meta/stats.json", out.warnings);
  const StatisticsFile relative = read_file(source.root + "/meta/relative_stats_dreamzero.json", out.warnings);
  Tables tables(source, episodes);

  const auto load = [&](const std::string& name, const VectorKey& key) -> Result<FeatureStatistics> {
    const LerobotFeature* feature = source.info.find(key.column);
    FeatureStatistics s = slice_of(absolute, key, static_cast<std::size_t>(feature->shape[0]));
    if (s.width() > 0) return s;
    out.computed.push_back(name);
    return compute_absolute(tables, key);
  };
  const auto load_relative = [&](const std::string& name, const ActionKey& key) -> Result<FeatureStatistics> {
    const auto it = relative.find(key.key.name);
    if (it != relative.end() && it->second.is_complete(key.key.width())) return it->second;
    out.computed.push_back(name);
    return compute_relative(tables, key, horizon);
  };

  for (const VectorKey& key : source.columns.state) {
    const std::string name = "state." + key.name;
    TROUPE_ASSIGN(FeatureStatistics s, load(name, key));
    warn_constant(source.root, name, s, out);
    out.keys.state.push_back(std::move(s));
  }
  for (const ActionKey& key : source.columns.action) {
    const std::string name = (key.relative ? "relative action." : "action.") + key.key.name;
    TROUPE_ASSIGN(FeatureStatistics s, key.relative ? load_relative(name, key) : load(name, key.key));
    if (s.width() == 0) {
      return Error{Errc::invalid_argument, fmt::format("{}: no episode has the {} rows that statistics of {} need",
                                                       source.root, horizon, name)};
    }
    warn_constant(source.root, name, s, out);
    out.keys.action.push_back(std::move(s));
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
        {"resolution", Json::array({view_width, view_height})}, {"channels", 3}, {"fps", source.info.fps}};
  }
  for (std::size_t i = 0; i < source.columns.state.size(); ++i)
    describe("state", source.columns.state[i], statistics.state[i]);
  for (std::size_t i = 0; i < source.columns.action.size(); ++i) {
    describe("action", source.columns.action[i].key, statistics.action[i]);
  }
  const Json out = {{tag, {{"embodiment_tag", tag}, {"statistics", stats}, {"modalities", modalities}}}};
  return out.dump(1);
}

}  // namespace troupe
