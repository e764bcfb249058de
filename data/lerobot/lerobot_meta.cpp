#include "data/lerobot/lerobot_meta.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <tuple>

#include "data/lerobot/episode_layout.h"
#include "data/lerobot/episodes_table.h"
#include "data/lerobot/file_checks.h"
#include "data/lerobot/json_lines.h"
#include "data/lerobot/json_number.h"
#include "data/lerobot/json_text.h"
#include "data/lerobot/parquet_table.h"

namespace troupe::data {

namespace {

/// Calls `take` with every line of a JSON-lines file that is read as a whole.
Result<void> for_each_line(const std::string& path, const std::function<Result<void>(const nlohmann::json&)>& take) {
  TROUPE_TRY(require_text_file(path));
  return each_json_line(path, [&](const JsonLine& line) -> Result<void> {
    TROUPE_ASSIGN(const auto json, parse_json<nlohmann::json>(line.text));
    return take(json);
  });
}

Result<std::vector<EpisodeRecord>> read_episode_lines(const std::string& root, const LerobotInfo& info) {
  std::vector<EpisodeRecord> episodes;
  TROUPE_TRY(for_each_line(root + "/meta/episodes.jsonl", [&](const nlohmann::json& json) -> Result<void> {
    EpisodeRecord record;
    TROUPE_ASSIGN(record.index, whole_number(json, "episode_index"));
    TROUPE_ASSIGN(record.length, whole_number(json, "length"));
    if (record.index < 0 || record.length < 0 || record.index > kMostEpisodeRows || record.length > kMostEpisodeRows) {
      return invalid_argument(
          fmt::format("episode_index {} and length {} are not both >= 0", record.index, record.length));
    }
    if (json.contains("tasks") && json["tasks"].is_array())
      record.tasks = json["tasks"].get<std::vector<std::string>>();
    record.data_chunk = record.index / info.chunks_size;
    record.data_file = record.index;
    for (std::size_t i = 0; i < info.features.size(); ++i) {
      if (!info.features[i].is_video()) continue;
      record.videos.push_back(
          {.feature = static_cast<std::int32_t>(i), .chunk = record.data_chunk, .file = record.data_file});
    }
    episodes.push_back(std::move(record));
    return {};
  }));
  return episodes;
}

/// Names files in findings; a template that cannot be filled is reported when the file is wanted.
std::string file_name(const std::string& root, const std::string& text, const PathFields& fields) {
  const auto path = fill_path_template(text, fields);
  return root + "/" + (path ? *path : text);
}

std::int64_t count_rows(const std::string& path) {
  const auto facts = read_parquet_facts(path);
  return facts ? facts->rows : -1;
}

void lay_out(const std::string& root, const LerobotInfo& info, std::vector<EpisodeRecord>& episodes,
             const CountFrames& count, std::vector<DatasetProblem>& findings) {
  lay_out_rows(
      episodes,
      [&](std::int64_t chunk, std::int64_t file) {
        return file_name(root, info.data_path, PathFields::of_file(chunk, file));
      },
      count ? count_rows : CountRows(), findings);
  const std::size_t cameras = episodes.empty() ? 0 : episodes[0].videos.size();
  for (std::size_t c = 0; c < cameras; ++c) {
    const std::string& key = info.features[static_cast<std::size_t>(episodes[0].videos[c].feature)].name;
    lay_out_frames(
        episodes, c, info,
        [&](std::int64_t chunk, std::int64_t file) {
          return file_name(root, info.video_path, PathFields::of_file(chunk, file, key));
        },
        count, findings);
  }
}

/// Refuses templates by which two of what have a file each come to the same one: samples would hold the frames of
/// another camera, or the rows of another episode.
class OwnFiles {
 public:
  OwnFiles(const std::string& root, const LerobotInfo& info) : root_(root), info_(info) {}

  Result<void> check(const std::vector<EpisodeRecord>& episodes) {
    const std::vector<std::string> each = info_.is_v3() ? std::vector<std::string>{"{chunk_index", "{file_index"}
                                                        : std::vector<std::string>{"{episode_index"};
    const auto names_all = [](const std::string& text, const std::vector<std::string>& fields) {
      return std::all_of(fields.begin(), fields.end(), [&](const auto& f) { return text.find(f) != text.npos; });
    };
    // templates that name every field, as they should, give every file its own name
    const bool rows = !names_all(info_.data_path, each);
    const bool frames = !names_all(info_.video_path, each) || info_.video_path.find("{video_key") == std::string::npos;
    for (const EpisodeRecord& e : episodes) {
      if (rows) TROUPE_TRY(take("data_path", info_.data_path, {-1, e.data_chunk, e.data_file}));
      for (const VideoSpan& v : e.videos) {
        if (frames) TROUPE_TRY(take("video_path", info_.video_path, {v.feature, v.chunk, v.file}));
      }
    }
    return {};
  }

 private:
  /// Camera (its place among the features; -1: rows), chunk and file.
  using Place = std::tuple<std::int32_t, std::int64_t, std::int64_t>;

  const std::string& camera(const Place& place) const {
    return info_.features[static_cast<std::size_t>(std::get<0>(place))].name;
  }

  std::string describe(const Place& place) const {
    const auto& [feature, chunk, file] = place;
    const std::string where =
        info_.is_v3() ? fmt::format("file {} of chunk {}", file, chunk) : fmt::format("episode {}", file);
    return feature < 0 ? where : fmt::format("{} of camera '{}'", where, camera(place));
  }

  Result<void> take(const char* key, const std::string& text, const Place& place) {
    const auto& [feature, chunk, file] = place;
    const std::string_view name = feature < 0 ? std::string_view() : camera(place);
    const auto path = fill_path_template(
        text, info_.is_v3() ? PathFields::of_file(chunk, file, name) : PathFields::of_episode(info_, file, name));
    if (!path) return {};  // reported when the file is wanted
    const auto [owner, is_new] = owners_[feature < 0].try_emplace(*path, place);
    if (is_new || owner->second == place) return {};
    return invalid_argument(
        fmt::format("{}/meta/info.json: {} is '{}', by which {} and {} are one file, {}: name {} in it", root_, key,
                    text, describe(owner->second), describe(place), *path,
                    std::get<0>(owner->second) != feature ? "{video_key}"
                    : info_.is_v3()                       ? "{chunk_index} and {file_index}"
                                                          : "{episode_index}"));
  }

  const std::string& root_;
  const LerobotInfo& info_;
  std::map<std::string, Place> owners_[2];  ///< by path: of frames, and of rows
};

/// All tables of one dataset name the same cameras.
Result<void> check_cameras(const std::string& root, const std::vector<EpisodeRecord>& episodes) {
  for (const EpisodeRecord& e : episodes) {
    if (e.videos.size() == episodes[0].videos.size()) continue;
    return invalid_argument(fmt::format("{}/meta/episodes: episode {} has the columns of {} cameras, episode {} of {}",
                                        root, e.index, e.videos.size(), episodes[0].index, episodes[0].videos.size()));
  }
  return {};
}

}  // namespace

Result<std::vector<EpisodeRecord>> read_episodes(const std::string& root, const LerobotInfo& info,
                                                 std::vector<DatasetProblem>& findings, const CountFrames& count) {
  TROUPE_ASSIGN(std::vector<EpisodeRecord> episodes,
                info.is_v3() ? read_episodes_table(root, info) : read_episode_lines(root, info));
  std::stable_sort(episodes.begin(), episodes.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
  for (std::size_t i = 1; i < episodes.size(); ++i) {
    if (episodes[i].index == episodes[i - 1].index) {
      return invalid_argument(fmt::format("{}/meta/{} lists episode {} twice", root,
                                          info.is_v3() ? "episodes" : "episodes.jsonl", episodes[i].index));
    }
  }
  if (info.is_v3()) {
    TROUPE_TRY(check_cameras(root, episodes));
    lay_out(root, info, episodes, count, findings);
  } else {
    for (std::size_t i = 1; i < episodes.size(); ++i)
      episodes[i].dataset_from = episodes[i - 1].dataset_from + episodes[i - 1].length;
  }
  TROUPE_TRY(OwnFiles(root, info).check(episodes));
  return episodes;
}

Result<std::vector<EpisodeRecord>> read_episodes(const std::string& root, const LerobotInfo& info) {
  std::vector<DatasetProblem> ignored;
  return read_episodes(root, info, ignored, {});
}

Result<void> add_task(std::map<std::int64_t, std::string>& tasks, std::int64_t index, std::string text) {
  const auto it = tasks.find(index);
  if (it != tasks.end() && it->second != text)
    return invalid_argument(fmt::format("task_index {} has two texts: '{}' and '{}'", index, it->second, text));
  tasks.insert_or_assign(index, std::move(text));
  return {};
}

Result<std::map<std::int64_t, std::string>> read_tasks(const std::string& root, const LerobotInfo& info) {
  if (info.is_v3()) return read_tasks_table(root + "/meta/tasks.parquet");
  std::map<std::int64_t, std::string> tasks;
  TROUPE_TRY(for_each_line(root + "/meta/tasks.jsonl", [&](const nlohmann::json& json) -> Result<void> {
    TROUPE_ASSIGN(const std::int64_t index, whole_number(json, "task_index"));
    return add_task(tasks, index, json.at("task").get<std::string>());
  }));
  return tasks;
}

Result<std::set<std::pair<std::int64_t, std::int64_t>>> read_step_filter(const std::string& root) {
  std::set<std::pair<std::int64_t, std::int64_t>> removed;
  const std::string path = root + "/meta/step_filter.jsonl";
  if (!std::filesystem::exists(path)) return removed;
  TROUPE_TRY(for_each_line(path, [&](const nlohmann::json& json) -> Result<void> {
    TROUPE_ASSIGN(const std::int64_t episode, whole_number(json, "episode_index"));
    TROUPE_ASSIGN(const std::vector<std::int64_t> rows, whole_numbers(json, "step_indices"));
    for (const std::int64_t row : rows) removed.emplace(episode, row);
    return {};
  }));
  return removed;
}

}  // namespace troupe::data
