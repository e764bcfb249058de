#include "data/health/metadata_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "data/health/dataset_keys.h"
#include "data/health/report_json.h"
#include "data/lerobot/file_checks.h"
#include "data/lerobot/json_text.h"
#include "data/statistics/dataset_statistics.h"

namespace troupe::data {

namespace {

using Json = nlohmann::ordered_json;

/// "embodiment_tag" of meta/embodiment.json, or nothing.
std::string stored_tag(const std::string& root) {
  const auto text = read_text_file(root + "/meta/embodiment.json");
  if (!text) return "";
  const auto json = parse_json<Json>(*text);
  if (!json || !json->is_object() || !json->contains("embodiment_tag") || !(*json)["embodiment_tag"].is_string())
    return "";
  return (*json)["embodiment_tag"].get<std::string>();
}

std::string tag_of(const HealthReport& report, const std::optional<EmbodimentConfig>& embodiment) {
  if (embodiment) return embodiment->tag;
  if (std::string tag = stored_tag(report.root); !tag.empty()) return tag;
  return report.robot_type.empty() ? "new_embodiment" : report.robot_type;
}

/// The statistics of every key, relative ones where the key is relative.
Result<KeyStatistics> key_statistics(const HealthReport& report) {
  KeyStatistics out;
  const auto slice = [&](const VectorKey& key) -> Result<FeatureStatistics> {
    const ColumnReport* column = report.column(key.column);
    if (column == nullptr)
      return Error{Errc::failed_precondition,
                   fmt::format("{}: there are no statistics of '{}'", report.root, key.column)};
    return column->statistics.slice(static_cast<std::size_t>(key.start), static_cast<std::size_t>(key.end));
  };
  for (const VectorKey& key : report.keys.state) {
    TROUPE_ASSIGN(FeatureStatistics s, slice(key));
    out.state.push_back(std::move(s));
  }
  for (const ActionKey& key : report.keys.action) {
    const RelativeReport* relative = nullptr;
    for (const RelativeReport& r : report.relative) {
      if (key.relative && r.action.name == key.key.name && r.statistics.pooled.width() > 0) relative = &r;
    }
    if (relative != nullptr) {
      out.action.push_back(relative->statistics.pooled);
      continue;
    }
    TROUPE_ASSIGN(FeatureStatistics s, slice(key.key));
    out.action.push_back(std::move(s));
  }
  return out;
}

}  // namespace

Result<std::vector<MetaText>> metadata_files(const HealthReport& report,
                                             const std::optional<EmbodimentConfig>& embodiment) {
  if (report.columns.empty()) {
    return Error{Errc::failed_precondition,
                 fmt::format("{}: no usable episode, so there is nothing to write statistics of", report.root)};
  }
  TROUPE_ASSIGN(LerobotDataset opened, LerobotDataset::open(report.root));
  const auto files = std::make_shared<const LerobotDataset>(std::move(opened));
  const EpisodeSource source = EpisodeSource::make(files, report.keys);
  const std::string tag = tag_of(report, embodiment);
  TROUPE_ASSIGN(const KeyStatistics statistics, key_statistics(report));

  std::vector<MetaText> out = {{"stats.json", stats_json(report, files->info().is_v3())}};
  if (!report.relative.empty()) {
    out.push_back({"relative_stats_dreamzero.json", relative_stats_json(report)});
    out.push_back({"relative_horizon_stats_dreamzero.json", relative_horizon_stats_json(report)});
  }
  out.push_back(
      {"metadata.json", experiment_metadata(source, statistics, tag, report.view_height, report.view_width) + "\n"});
  if (!embodiment) return out;
  const auto add_if_absent = [&](const std::string& name, const std::string& text) {
    std::error_code code;
    if (!std::filesystem::exists(report.root + "/meta/" + name, code)) out.push_back({name, text});
  };
  add_if_absent("modality.json", modality_json(report.keys));
  add_if_absent("embodiment.json", Json{{"robot_type", tag}, {"embodiment_tag", tag}}.dump(1) + "\n");
  return out;
}

}  // namespace troupe::data
