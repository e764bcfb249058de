#include "data/health/report_json.h"

#include <array>
#include <map>
#include <nlohmann/json.hpp>

namespace troupe::data {

namespace {

using Json = nlohmann::ordered_json;
using Values = std::vector<double> FeatureStatistics::*;

constexpr std::array<std::pair<const char*, Values>, 6> kSix = {{{"max", &FeatureStatistics::max},
                                                                 {"min", &FeatureStatistics::min},
                                                                 {"mean", &FeatureStatistics::mean},
                                                                 {"std", &FeatureStatistics::std},
                                                                 {"q01", &FeatureStatistics::q01},
                                                                 {"q99", &FeatureStatistics::q99}}};
constexpr std::array<std::pair<const char*, Values>, 3> kMiddle = {
    {{"q10", &FeatureStatistics::q10}, {"q50", &FeatureStatistics::q50}, {"q90", &FeatureStatistics::q90}}};

Json six_of(const FeatureStatistics& s) {
  Json out = Json::object();
  for (const auto& [name, values] : kSix) out[name] = s.*values;
  return out;
}

Json all_of(const FeatureStatistics& s) {
  Json out = six_of(s);
  for (const auto& [name, values] : kMiddle) {
    if (!(s.*values).empty()) out[name] = s.*values;
  }
  return out;
}

Json steps_of(const std::vector<FeatureStatistics>& steps) {
  Json out = Json::object();
  for (const auto& [name, values] : kSix) {
    Json rows = Json::array();
    for (const FeatureStatistics& step : steps) rows.push_back(step.*values);
    out[name] = std::move(rows);
  }
  return out;
}

Json spread_json(const Spread& s) { return {{"min", s.min}, {"median", s.median}, {"mean", s.mean}, {"max", s.max}}; }

const char* method(bool kept) { return kept ? "values kept" : "refinement, 16384 bins a pass"; }

/// Statistics of a key: its slice of the column, or null when the column has none.
Json key_json(const HealthReport& r, const VectorKey& key) {
  Json out = {{"column", key.column}, {"start", key.start}, {"end", key.end}};
  const ColumnReport* column = r.column(key.column);
  if (column == nullptr) return out;
  out.update(all_of(column->statistics.slice(static_cast<std::size_t>(key.start), static_cast<std::size_t>(key.end))));
  return out;
}

Json statistics_json(const HealthReport& r) {
  Json out;
  out["rows"] = r.table_rows;
  out["method"] = {{"columns", method(r.columns_kept)},
                   {"relative", method(r.relative_kept)},
                   {"passes", r.passes},
                   {"sums", "float64, blocks of one episode"},
                   {"quantiles", "linear interpolation at p*(n-1)"}};
  out["columns"] = Json::object();
  for (const ColumnReport& c : r.columns) {
    Json column = {{"dtype", c.dtype}};
    if (!c.names.empty()) column["names"] = c.names;
    column.update(all_of(c.statistics));
    column["constant_dimensions"] = c.constant;
    column["near_constant_dimensions"] = c.near_constant;
    out["columns"][c.name] = std::move(column);
  }
  out["state"] = Json::object();
  for (const VectorKey& k : r.keys.state) out["state"][k.name] = key_json(r, k);
  out["action"] = Json::object();
  for (const ActionKey& k : r.keys.action) out["action"][k.key.name] = key_json(r, k.key);
  out["relative_horizon"] = r.horizon;
  out["relative"] = Json::object();
  out["relative_per_horizon"] = Json::object();
  for (const RelativeReport& k : r.relative) {
    if (k.statistics.pooled.width() == 0) continue;
    out["relative"][k.action.name] = all_of(k.statistics.pooled);
    out["relative_per_horizon"][k.action.name] = steps_of(k.statistics.steps);
  }
  return out;
}

Json cameras_json(const HealthReport& r) {
  Json out = Json::object();
  for (const CameraReport& c : r.cameras) {
    out[c.name] = {{"feature", c.feature},    {"in_parquet", c.in_parquet}, {"files", c.files}, {"pictures", c.frames},
                   {"bytes", c.bytes},        {"codecs", c.codecs},         {"sizes", c.sizes}, {"rates", c.rates},
                   {"b_frames", c.reordered}, {"gop", spread_json(c.gop)}};
  }
  return out;
}

Json episodes_json(const HealthReport& r) {
  Json list = Json::array();
  std::vector<double> lengths;
  for (const EpisodeReport& e : r.episodes) {
    lengths.push_back(static_cast<double>(e.rows));
    list.push_back({{"index", e.index},
                    {"rows", e.rows},
                    {"problems", e.problems},
                    {"warnings", e.warnings},
                    {"label_spans", e.spans},
                    {"idle_rows", e.idle_rows},
                    {"longest_idle", e.longest_idle},
                    {"outliers", e.outliers},
                    {"jumps", e.jumps},
                    {"content", e.content}});
  }
  return {{"count", r.episodes.size()},
          {"usable", r.usable_episodes()},
          {"rows", spread_json(spread_of(lengths))},
          {"list", std::move(list)}};
}

Json labels_json(const HealthReport& r) {
  Json labels = Json::array();
  for (const auto& [label, rows] : r.label_rows) {
    const auto text = r.texts.find(label);
    labels.push_back({{"label", label}, {"rows", rows}, {"text", text == r.texts.end() ? Json() : Json(text->second)}});
  }
  return {{"span_rows", spread_json(spread_of(r.span_lengths))}, {"spans", r.span_lengths.size()}, {"list", labels}};
}

Json findings_json(const HealthReport& r) {
  Json out = Json::array();
  for (const HealthFinding& f : r.findings) {
    const Defect* kind = find_defect(f.code);
    Json finding = {{"code", f.code}, {"severity", enum_name(f.level)}, {"path", f.path}, {"text", f.text}};
    if (f.episode >= 0) finding["episode"] = f.episode;
    if (!f.others.empty()) finding["further_episodes"] = f.others;
    if (kind != nullptr) {
      finding["action"] = kind->action;
      finding["remedy"] = kind->remedy;
    }
    out.push_back(std::move(finding));
  }
  return out;
}

Json counts_json(const HealthReport& r) {
  std::map<std::string, std::int64_t> counts;
  for (const HealthFinding& f : r.findings) ++counts[f.code];
  return counts;
}

Json decoded_json(const HealthReport& r) {
  Json files = Json::array();
  for (const DecodedFile& f : r.decoded.files) {
    Json file = {{"path", f.path}, {"camera", f.camera}, {"pictures", f.frames}, {"bytes", f.bytes}};
    file["error"] = f.error.empty() ? Json() : Json(f.error);
    files.push_back(std::move(file));
  }
  const double rate = r.decoded.seconds > 0 ? static_cast<double>(r.decoded.frames) / r.decoded.seconds : 0;
  return {
      {"pictures", r.decoded.frames}, {"seconds", r.decoded.seconds}, {"pictures_per_second", rate}, {"files", files}};
}

/// Text may hold bytes that are not UTF-8 (file names): they become replacement characters.
std::string dump(const Json& json) { return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace

std::string report_json(const HealthReport& r) {
  Json out;
  out["format"] = "troupe-dataset-stats";
  out["version"] = 1;
  out["dataset"] = {{"path", r.root},
                    {"codebase_version", r.version},
                    {"robot_type", r.robot_type},
                    {"fps", r.fps},
                    {"frames", r.frames},
                    {"hours", r.hours()},
                    {"tasks", r.tasks}};
  out["verify"] = r.verify;
  out["sound"] = r.count(FindingLevel::problem) == 0;
  out["episodes"] = episodes_json(r);
  out["labels"] = labels_json(r);
  out["cameras"] = cameras_json(r);
  out["statistics"] = statistics_json(r);
  out["defects"] = counts_json(r);
  out["findings"] = findings_json(r);
  if (r.verify == "full") out["decoded"] = decoded_json(r);
  return dump(out);
}

std::string stats_json(const HealthReport& r, bool count) {
  Json out = Json::object();
  for (const ColumnReport& c : r.columns) {
    out[c.name] = all_of(c.statistics);
    if (count) out[c.name]["count"] = Json::array({r.table_rows});
  }
  return dump(out);
}

std::string relative_stats_json(const HealthReport& r) {
  Json out = Json::object();
  for (const RelativeReport& k : r.relative) {
    if (k.statistics.pooled.width() > 0) out[k.action.name] = six_of(k.statistics.pooled);
  }
  return dump(out);
}

std::string relative_horizon_stats_json(const HealthReport& r) {
  Json out = Json::object();
  for (const RelativeReport& k : r.relative) {
    if (k.statistics.pooled.width() > 0) out[k.action.name] = steps_of(k.statistics.steps);
  }
  return dump(out);
}

}  // namespace troupe::data
