#include "data/convert/dataset_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <span>

#include "base/hash.h"
#include "data/convert/json_columns.h"
#include "data/lerobot/episodes_table.h"
#include "data/lerobot/file_checks.h"
#include "data/lerobot/json_lines.h"
#include "data/lerobot/json_text.h"

namespace troupe::data {

namespace {

namespace fs = std::filesystem;

/// The columns of an episodes table that LeRobot defines.
bool known_column(std::string_view name) {
  return name == "episode_index" || name == "length" || name == "tasks" || name.starts_with("data/") ||
         name.starts_with("videos/") || name.starts_with("meta/episodes/") || name.starts_with("stats/") ||
         name == "dataset_from_index" || name == "dataset_to_index";
}

/// A number, a bool, or a list of such values.
bool holds_numbers(const JsonDoc& value) {
  if (!value.is_array()) return value.is_number() || value.is_boolean();
  return std::all_of(value.begin(), value.end(), holds_numbers);
}

/// {feature: {statistic: numbers}}
bool is_statistics(const JsonDoc& json) {
  return json.is_object() && std::all_of(json.begin(), json.end(), [](const JsonDoc& feature) {
           return feature.is_object() && std::all_of(feature.begin(), feature.end(), holds_numbers);
         });
}

}  // namespace

Result<std::string> hash_metadata(const std::string& root) {
  std::vector<std::string> files;
  std::error_code failed;
  for (fs::recursive_directory_iterator it(root + "/meta", failed), end; !failed && it != end; it.increment(failed)) {
    std::error_code dangling;
    if (it->is_regular_file(dangling)) files.push_back(it->path().string());
  }
  if (failed) return Error{Errc::data_loss, fmt::format("{}/meta cannot be listed: {}", root, failed.message())};
  std::sort(files.begin(), files.end());
  Xxh3Stream hash;
  std::vector<char> block(1 << 20);
  for (const std::string& path : files) {
    const std::string name = fmt::format("{} {}\n", path.substr(root.size()), fs::file_size(path));
    hash.update(std::as_bytes(std::span(name)));
    std::ifstream in(path, std::ios::binary);
    while (in) {
      in.read(block.data(), static_cast<std::streamsize>(block.size()));
      hash.update(std::as_bytes(std::span(block).first(static_cast<std::size_t>(in.gcount()))));
    }
    if (!in.eof()) return Error{Errc::data_loss, fmt::format("{} cannot be read to its end", path)};
  }
  return hash.hex();
}

Result<JsonDoc> read_json_file(const std::string& path) {
  TROUPE_ASSIGN(const std::string text, read_text_file(path));
  auto json = parse_json<JsonDoc>(text);
  if (!json) return json.error().with(path);
  return json;
}

Result<DatasetSource> DatasetSource::open(const std::string& root) {
  DatasetSource s;
  s.root = fs::path(root).lexically_normal().string();
  while (s.root.size() > 1 && s.root.back() == '/') s.root.pop_back();
  TROUPE_ASSIGN(auto files, LerobotDataset::open(s.root, {}, DiscardedEpisodes::kept));
  s.files = std::make_shared<const LerobotDataset>(std::move(files));
  s.root = s.files->root();
  s.facts = s.files->info();
  s.tasks = s.files->tasks();
  TROUPE_ASSIGN(s.info, read_json_file(s.root + "/meta/info.json"));
  for (const DatasetProblem& f : s.files->findings()) s.notes.push_back(fmt::format("{} {}", f.code, f.text));
  if (s.files->episodes().empty()) {
    const std::string list = s.root + (s.facts.is_v3() ? "/meta/episodes" : "/meta/episodes.jsonl");
    return Error{Errc::data_loss, list + " lists no episode"};
  }
  try {
    TROUPE_TRY(s.find_cameras());
    TROUPE_TRY(s.place());
    s.find_doubtful_cameras();
    if (s.facts.is_v3()) {
      TROUPE_TRY(s.read_v3_extras());
    } else {
      TROUPE_TRY(s.read_v2_extras());
      TROUPE_TRY(s.read_v2_stats());
    }
  } catch (const nlohmann::json::exception& e) {
    return invalid_argument(fmt::format("{}/meta: {}", s.root, e.what()));
  }
  std::error_code absent;
  if (fs::exists(s.root + "/meta/stats.json", absent)) {
    auto stats = read_json_file(s.root + "/meta/stats.json");
    if (stats && stats->is_object())
      s.dataset_stats = std::move(*stats);
    else
      s.notes.push_back(fmt::format("{}/meta/stats.json is no JSON object; its statistics are not carried", s.root));
  }
  TROUPE_ASSIGN(s.metadata_hash, hash_metadata(s.root));
  return s;
}

Result<void> DatasetSource::find_cameras() {
  const std::vector<EpisodeRecord>& records = files->episodes();
  for (const LerobotFeature& feature : facts.features) {
    if (!feature.is_video()) continue;
    std::string where;
    bool any = false;
    for (std::size_t i = 0; i < records.size() && !any; ++i) {
      if (files->video_span(i, feature.name) == nullptr) continue;
      TROUPE_ASSIGN(const ImageSource frames, files->images(i, feature.name));
      if (where.empty()) where = fmt::format("the first of episode {} would be {}", records[i].index, frames.path);
      std::error_code absent;
      any = fs::exists(frames.path, absent);
    }
    if (any) {
      cameras.push_back(feature.name);
    } else {
      if (where.empty()) where = "the metadata of the episodes do not say which";
      doubtful_cameras.push_back({feature.name, no_file_of(feature.name, where)});
    }
  }
  return {};
}

void DatasetSource::find_doubtful_cameras() {
  for (const SourceEpisode& e : episodes) {
    const auto schema = parquet_schema(e.table);
    if (!schema) continue;  // the scan of the episodes names it
    add_absent_images(facts, e.table, **schema, doubtful_cameras);
    break;
  }
  add_unlisted_cameras(root, facts, doubtful_cameras);
}

void DatasetSource::drop_camera(const std::string& name) {
  const auto camera = std::find(cameras.begin(), cameras.end(), name);
  if (camera != cameras.end()) {
    for (SourceEpisode& e : episodes) e.videos.erase(e.videos.begin() + (camera - cameras.begin()));
    cameras.erase(camera);
  }
  std::erase_if(doubtful_cameras, [&](const DoubtfulCamera& c) { return c.name == name; });
  std::erase_if(facts.features, [&](const LerobotFeature& f) { return f.name == name; });
  info["features"].erase(name);
  if (dataset_stats.is_object()) dataset_stats.erase(name);
  dropped.push_back(name);
}

Result<void> DatasetSource::place() {
  for (std::size_t i = 0; i < files->episodes().size(); ++i) {
    const EpisodeRecord& r = files->episodes()[i];
    TROUPE_ASSIGN(const RowSource rows, files->rows(i));
    SourceEpisode e{.index = r.index,
                    .length = r.length,
                    .tasks = r.tasks,
                    .table = rows.path,
                    .first_row = rows.first_row,
                    .videos = std::vector<SourceVideo>(cameras.size()),
                    .extra = {}};
    for (std::size_t c = 0; c < cameras.size(); ++c) {
      const VideoSpan* span = files->video_span(i, cameras[c]);
      if (span == nullptr) continue;
      TROUPE_ASSIGN(const ImageSource frames, files->images(i, cameras[c]));
      e.videos[c] = {frames.path, span->first_frame, span->frames};
    }
    episodes.push_back(std::move(e));
  }
  return {};
}

Result<void> DatasetSource::read_v2_extras() {
  std::map<std::int64_t, JsonDoc> extras;
  TROUPE_TRY(each_json_line(root + "/meta/episodes.jsonl", [&](const JsonLine& line) -> Result<void> {
    TROUPE_ASSIGN(JsonDoc json, parse_json<JsonDoc>(line.text));
    const std::int64_t index = json.at("episode_index");
    for (const char* known : {"episode_index", "length", "tasks"}) json.erase(known);
    if (!json.empty()) extras[index] = std::move(json);
    return {};
  }));
  for (SourceEpisode& e : episodes) {
    if (const auto found = extras.find(e.index); found != extras.end()) e.extra = std::move(found->second);
  }
  return {};
}

Result<void> DatasetSource::read_v2_stats() {
  const std::string path = root + "/meta/episodes_stats.jsonl";
  std::error_code absent;
  if (!fs::exists(path, absent)) return {};
  std::map<std::int64_t, std::int64_t> offsets;
  std::int64_t unreadable = 0;
  TROUPE_TRY(each_json_line(path, [&](const JsonLine& line) -> Result<void> {
    // NaN and Infinity, which Python writes, are no JSON: such statistics are computed anew
    const auto json = parse_json<JsonDoc>(line.text);
    if (json && json->is_object() && json->contains("episode_index") && (*json)["episode_index"].is_number_integer() &&
        json->contains("stats") && is_statistics((*json)["stats"])) {
      offsets[(*json)["episode_index"].get<std::int64_t>()] = line.offset;
    } else {
      ++unreadable;
    }
    return {};
  }));
  if (unreadable > 0)
    notes.push_back(
        fmt::format("{}: the statistics of {} lines are not JSON numbers; they are computed anew", path, unreadable));
  for (SourceEpisode& e : episodes) {
    if (const auto found = offsets.find(e.index); found != offsets.end()) e.stats_at = found->second;
  }
  return {};
}

Result<void> DatasetSource::read_v3_extras() {
  stats_rows_ = std::make_shared<RowReader>([](std::string_view name) { return name.starts_with("stats/"); });
  RowReader reader([](std::string_view name) { return name == "episode_index" || !known_column(name); });
  std::map<std::int64_t, std::size_t> place_of;
  for (std::size_t i = 0; i < episodes.size(); ++i) place_of[episodes[i].index] = i;
  std::int64_t first = 0;
  for (const std::string& path : episode_table_files(root)) {
    TROUPE_ASSIGN(const auto file, open_parquet(path));
    const std::int64_t rows = file->parquet_reader()->metadata()->num_rows();
    TROUPE_ASSIGN(const auto schema, parquet_schema(path));
    const auto names = schema->field_names();
    const bool statistics =
        std::any_of(names.begin(), names.end(), [](const std::string& n) { return n.starts_with("stats/"); });
    constexpr std::int64_t kRows = 256;
    for (std::int64_t at = 0; at < rows; at += kRows) {
      TROUPE_ASSIGN(const auto table, reader.read(path, at, std::min(kRows, rows - at)));
      const auto index = table->GetColumnByName("episode_index");
      for (std::int64_t r = 0; r < table->num_rows(); ++r) {
        const auto found = place_of.find(json_value(*index->chunk(0), r).get<std::int64_t>());
        if (found == place_of.end()) continue;
        SourceEpisode& e = episodes[found->second];
        if (statistics) e.stats_at = first + at + r;
        for (int c = 0; c < table->num_columns(); ++c) {
          const std::string& name = table->field(c)->name();
          JsonDoc value = name == "episode_index" ? JsonDoc() : json_value(*table->column(c)->chunk(0), r);
          if (!value.is_null()) e.extra[name] = std::move(value);
        }
      }
    }
    stats_files_.push_back({path, first, rows});
    first += rows;
  }
  return {};
}

Result<JsonDoc> DatasetSource::stats(const SourceEpisode& episode) {
  if (episode.stats_at < 0) return JsonDoc();
  if (!facts.is_v3()) {
    const std::string path = root + "/meta/episodes_stats.jsonl";
    std::ifstream in(path, std::ios::binary);
    std::string line;
    in.seekg(episode.stats_at);
    JsonDoc json;
    if (std::getline(in, line)) {
      if (auto parsed = parse_json<JsonDoc>(line)) json = std::move(*parsed);
    }
    if (!json.is_object() || json.value("episode_index", std::int64_t{-1}) != episode.index)
      return Error{Errc::data_loss, fmt::format("{} has changed meanwhile", path)};
    for (const std::string& camera : dropped) json["stats"].erase(camera);
    return JsonDoc(std::move(json["stats"]));
  }
  for (const StatsFile& file : stats_files_) {
    const std::int64_t row = episode.stats_at - file.first_row;
    if (row < 0 || row >= file.rows) continue;
    TROUPE_ASSIGN(const auto table, stats_rows_->read(file.path, row, 1));
    JsonDoc out = JsonDoc::object();
    for (int c = 0; c < table->num_columns(); ++c) {
      const std::string& name = table->field(c)->name();
      const std::size_t slash = name.rfind('/');
      const auto& chunk = table->column(c)->chunk(0);
      if (slash > 6 && !chunk->IsNull(0))
        out[name.substr(6, slash - 6)][name.substr(slash + 1)] = json_value(*chunk, 0);
    }
    for (const std::string& camera : dropped) out.erase(camera);
    return out;
  }
  return Error{Errc::internal, fmt::format("{}: no statistics at row {}", root, episode.stats_at)};
}

}  // namespace troupe::data
