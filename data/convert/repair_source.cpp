#include "data/convert/repair_source.h"

#include <arrow/type_traits.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>

#include "data/convert/found_files.h"
#include "data/convert/json_columns.h"
#include "data/convert/packet_copy.h"
#include "data/convert/repair_info.h"
#include "data/lerobot/episode_layout.h"
#include "data/lerobot/episodes_table.h"
#include "data/lerobot/json_lines.h"
#include "data/lerobot/json_text.h"

namespace troupe::data {

namespace {

namespace fs = std::filesystem;

/// What the metadata say of an episode.
struct Stated {
  EpisodeRecord record;
  JsonDoc extra;
};

class Repair {
 public:
  explicit Repair(const std::string& root) { s_.root = root; }

  Result<DatasetSource> run() {
    TROUPE_ASSIGN(s_.info, mend_info(s_.root, s_.notes));
    TROUPE_TRY(parse_info());
    files_ = find_files(s_.root, s_.facts);
    s_.notes.insert(s_.notes.end(), files_.notes.begin(), files_.notes.end());
    for (const auto& [number, path] : files_.tables) {
      if (!mend_features(path, s_.info["features"], s_.notes)) continue;  // the scan of the files names it
      TROUPE_TRY(parse_info());
      break;
    }
    read_stated();
    read_stated_tasks();
    for (const LerobotFeature& f : s_.facts.features) {
      if (!f.is_video()) continue;
      if (files_.videos.count(f.name) != 0) {
        s_.cameras.push_back(f.name);
      } else {
        s_.doubtful_cameras.push_back(
            {f.name, no_file_of(f.name, fmt::format("no folder '{}' holds a video", f.name))});
      }
    }
    s_.facts.is_v3() ? find_v3_episodes() : find_v2_episodes();
    if (s_.episodes.empty()) return Error{Errc::data_loss, fmt::format("{} holds no table of an episode", s_.root)};
    note_episodes(unlisted_, "are not in the metadata and are taken");
    note_episodes(resized_, "have the length of their tables, not that of the metadata");
    add_lost_episodes();
    std::stable_sort(s_.episodes.begin(), s_.episodes.end(),
                     [](const SourceEpisode& a, const SourceEpisode& b) { return a.index < b.index; });
    settle_tasks();
    for (std::size_t c = 0; c < s_.cameras.size(); ++c) s_.facts.is_v3() ? place_v3_frames(c) : place_v2_frames(c);
    TROUPE_ASSIGN(s_.metadata_hash, hash_metadata(s_.root));
    return std::move(s_);
  }

 private:
  Result<void> parse_info() {
    TROUPE_ASSIGN(s_.facts, parse_lerobot_info(s_.info.dump(), s_.root + "/meta/info.json"));
    return {};
  }
  void note(const std::string& text) { s_.notes.push_back(text); }
  /// One note for any number of episodes.
  void note_episodes(const std::vector<std::int64_t>& episodes, const char* what) {
    constexpr std::size_t kMost = 10;
    if (episodes.empty()) return;
    const auto end = episodes.begin() + static_cast<std::ptrdiff_t>(std::min(episodes.size(), kMost));
    note(fmt::format("{} episodes {}: {}{}", episodes.size(), what, fmt::join(episodes.begin(), end, ", "),
                     episodes.size() > kMost ? ", ..." : ""));
  }

  /// What can be read of the list of episodes.
  void read_stated() {
    if (s_.facts.is_v3()) {
      std::vector<DatasetProblem> ignored;
      auto records = read_episodes(s_.root, s_.facts, ignored, {});
      if (!records) return note(records.error().message() + "; the episodes are those of the tables");
      for (const EpisodeRecord& r : *records) stated_[r.index] = {.record = r, .extra = {}};
      auto plain = DatasetSource::open(s_.root);
      if (!plain) return note(plain.error().message() + "; columns of the episodes that LeRobot lacks are not carried");
      for (SourceEpisode& e : plain->episodes) stated_[e.index].extra = std::move(e.extra);
      return;
    }
    const std::string path = s_.root + "/meta/episodes.jsonl";
    std::error_code absent;
    if (!fs::exists(path, absent)) return note(path + " is missing; the tables replace it");
    std::int64_t bad = 0;
    const auto read = each_json_line(path, [&](const JsonLine& line) -> Result<void> {
      auto json = parse_json<JsonDoc>(line.text);
      if (!json || !json->is_object() || !json->contains("episode_index") ||
          !(*json)["episode_index"].is_number_integer()) {
        ++bad;
        return {};
      }
      Stated& s = stated_[(*json)["episode_index"].get<std::int64_t>()];
      s.record.index = (*json)["episode_index"].get<std::int64_t>();
      if (json->contains("length") && (*json)["length"].is_number_integer())
        s.record.length = std::clamp<std::int64_t>((*json)["length"].get<std::int64_t>(), 0, kMostEpisodeRows);
      for (const JsonDoc& text : json->value("tasks", JsonDoc::array())) {
        if (text.is_string()) s.record.tasks.push_back(text.get<std::string>());
      }
      for (const char* known : {"episode_index", "length", "tasks"}) json->erase(known);
      if (!json->empty()) s.extra = std::move(*json);
      return {};
    });
    if (!read) note(read.error().message() + "; the tables replace what follows");
    if (bad > 0) note(fmt::format("{}: {} lines are lost; the tables replace them", path, bad));
  }

  void read_stated_tasks() {
    auto tasks = read_tasks(s_.root, s_.facts);
    if (tasks) {
      s_.tasks = std::move(*tasks);
    } else {
      note(tasks.error().message() + "; texts are those of the episodes");
    }
  }

  /// An episode of the table at `path`, rows [first, first + length).
  void add_episode(std::int64_t index, const std::string& path, std::int64_t first, std::int64_t length) {
    SourceEpisode e{.index = index,
                    .length = length,
                    .tasks = {},
                    .table = path,
                    .first_row = first,
                    .videos = std::vector<SourceVideo>(s_.cameras.size()),
                    .extra = {}};
    const auto stated = stated_.find(index);
    if (stated == stated_.end()) {
      unlisted_.push_back(index);
    } else {
      e.tasks = stated->second.record.tasks;
      e.extra = stated->second.extra;
      if (stated->second.record.length != length && length > 0) resized_.push_back(index);
    }
    s_.episodes.push_back(std::move(e));
  }

  void find_v2_episodes() {
    for (const auto& [number, path] : files_.tables) {
      const auto file = open_parquet(path);
      // an unreadable one is named when the files are scanned
      const std::int64_t rows = file ? (*file)->parquet_reader()->metadata()->num_rows() : 0;
      add_episode(number.second, path, 0, rows);
    }
  }

  /// The column episode_index, nulls included; nothing where it is missing, unreadable or holds no integers.
  static std::optional<std::vector<std::optional<std::int64_t>>> numbers_in(const std::string& path) {
    const auto file = open_parquet(path);
    if (!file) return std::nullopt;
    RowReader rows([](std::string_view name) { return name == "episode_index"; });
    const auto table = rows.read(path, 0, (*file)->parquet_reader()->metadata()->num_rows());
    const auto column = table ? (*table)->GetColumnByName("episode_index") : nullptr;
    if (!column || !arrow::is_integer(column->type()->id())) return std::nullopt;
    std::vector<std::optional<std::int64_t>> out;
    for (const auto& chunk : column->chunks()) {
      for (std::int64_t r = 0; r < chunk->length(); ++r) {
        const JsonDoc value = json_value(*chunk, r);
        out.push_back(value.is_number_integer() ? std::optional(value.get<std::int64_t>()) : std::nullopt);
      }
    }
    return out;
  }

  void find_v3_episodes() {
    for (const auto& [number, path] : files_.tables) {
      const auto numbers = numbers_in(path);
      if (!numbers) {
        take_stated(number, path);
        continue;
      }
      std::int64_t first = 0;
      const auto rows = static_cast<std::int64_t>(numbers->size());
      for (std::int64_t r = 1; r <= rows; ++r) {
        const auto begun = (*numbers)[static_cast<std::size_t>(first)];
        // a null belongs to the episode around it
        const auto here = r < rows ? (*numbers)[static_cast<std::size_t>(r)] : std::nullopt;
        if (r < rows && (!here || here == begun)) continue;
        if (begun) {
          add_v3_episode(*begun, path, first, r - first);
        } else {
          note(fmt::format("{}: rows {} to {} say of no episode that they are its", path, first, r - 1));
        }
        first = r;
      }
    }
  }

  void add_v3_episode(std::int64_t index, const std::string& path, std::int64_t first, std::int64_t length) {
    for (SourceEpisode& e : s_.episodes) {
      if (e.index != index) continue;
      e.problems.push_back(
          {"D04", path,
           fmt::format("{}: column episode_index says {} in rows {} to {} and in rows {} to {} of {}", path, index,
                       first, first + length - 1, e.first_row, e.first_row + e.length - 1, e.table)});
      return;
    }
    add_episode(index, path, first, length);
  }

  /// The episodes that the metadata put into a table which does not say whose its rows are.
  void take_stated(const FileNumber& number, const std::string& path) {
    for (const auto& [index, stated] : stated_) {
      const EpisodeRecord& r = stated.record;
      if (r.data_chunk == number.first && r.data_file == number.second) add_episode(index, path, r.first_row, r.length);
    }
  }

  /// Episodes of the metadata that no table holds.
  void add_lost_episodes() {
    std::set<std::int64_t> there;
    for (const SourceEpisode& e : s_.episodes) there.insert(e.index);
    for (const auto& [index, stated] : stated_) {
      if (there.count(index) != 0) continue;
      SourceEpisode lost{.index = index,
                         .length = stated.record.length,
                         .tasks = stated.record.tasks,
                         .table = s_.root,
                         .first_row = 0,
                         .videos = std::vector<SourceVideo>(s_.cameras.size()),
                         .extra = {}};
      lost.problems.push_back({"D03", s_.root, fmt::format("{}: no table holds its rows", s_.root)});
      s_.episodes.push_back(std::move(lost));
    }
  }

  /// task_index of an episode's rows; empty: the table has no such column, or cannot be read.
  static std::set<std::int64_t> tasks_of(RowReader& rows, SourceEpisode& e) {
    std::set<std::int64_t> out;
    const auto table = rows.read(e.table, e.first_row, e.length);
    const auto column = table ? (*table)->GetColumnByName("task_index") : nullptr;
    if (!column) return out;
    const NumberColumn numbers = number_column(*column);
    if (!numbers.integers || numbers.values.empty())
      e.problems.push_back(
          {"D04", e.table, fmt::format("{}: column 'task_index' holds nulls or no integers", e.table)});
    for (const double v : numbers.values) out.insert(static_cast<std::int64_t>(v));
    return out;
  }

  /// Texts of all task indices that the rows use, and of every episode the texts of its rows.
  void settle_tasks() {
    RowReader rows([](std::string_view name) { return name == "task_index"; });
    std::vector<std::set<std::int64_t>> used(s_.episodes.size());
    for (std::size_t i = 0; i < s_.episodes.size(); ++i) {
      SourceEpisode& e = s_.episodes[i];
      if (e.problems.empty() && e.length > 0) used[i] = tasks_of(rows, e);
      if (used[i].size() != 1 || e.tasks.size() != 1 || s_.tasks.count(*used[i].begin()) != 0) continue;
      note(fmt::format("task {} is '{}', the text of episode {}", *used[i].begin(), e.tasks[0], e.index));
      s_.tasks[*used[i].begin()] = e.tasks[0];
    }
    for (std::size_t i = 0; i < s_.episodes.size(); ++i) {
      SourceEpisode& e = s_.episodes[i];
      std::vector<std::string> texts;
      for (const std::int64_t task : used[i]) {
        const auto text = s_.tasks.find(task);
        if (text != s_.tasks.end()) {
          texts.push_back(text->second);
        } else {
          e.problems.push_back(
              {"D11", e.table, fmt::format("{}: column 'task_index' holds {}, whose text is lost", e.table, task)});
        }
      }
      if (!texts.empty()) e.tasks = std::move(texts);
    }
  }

  void place_v2_frames(std::size_t camera) {
    const auto& videos = files_.videos.at(s_.cameras[camera]);
    for (SourceEpisode& e : s_.episodes) {
      const auto found = videos.find({0, e.index});
      if (found != videos.end()) {
        e.videos[camera].path = found->second;
      } else {
        lose_frames(e, camera);
      }
    }
  }

  void lose_frames(SourceEpisode& e, std::size_t camera) {
    e.problems.push_back(
        {"D06", s_.root, fmt::format("{}: no video of camera '{}' holds its frames", s_.root, s_.cameras[camera])});
  }

  /// The video that the metadata name; null: they name none, or it is not there.
  const VideoSpan* stated_span(const SourceEpisode& e, std::size_t camera) const {
    const auto stated = stated_.find(e.index);
    if (stated == stated_.end()) return nullptr;
    for (const VideoSpan& span : stated->second.record.videos) {
      if (s_.facts.features[static_cast<std::size_t>(span.feature)].name != s_.cameras[camera]) continue;
      return files_.videos.at(s_.cameras[camera]).count({span.chunk, span.file}) != 0 ? &span : nullptr;
    }
    return nullptr;
  }

  void place_v3_frames(std::size_t camera) {
    const bool all = std::all_of(s_.episodes.begin(), s_.episodes.end(), [&](const SourceEpisode& e) {
      return !e.problems.empty() || stated_span(e, camera) != nullptr;
    });
    all ? place_as_stated(camera) : place_in_order(camera);
  }

  /// By the times of the metadata and the lengths of the tables.
  void place_as_stated(std::size_t camera) {
    const auto& videos = files_.videos.at(s_.cameras[camera]);
    std::vector<EpisodeRecord> records;
    std::vector<std::size_t> places;
    std::int64_t rows = 0;
    for (std::size_t i = 0; i < s_.episodes.size(); ++i) {
      const VideoSpan* span = stated_span(s_.episodes[i], camera);
      if (span == nullptr) continue;  // it has a problem already
      records.push_back({.index = s_.episodes[i].index, .length = s_.episodes[i].length});
      records.back().dataset_from = rows;
      records.back().videos = {*span};
      rows += s_.episodes[i].length;
      places.push_back(i);
    }
    std::vector<DatasetProblem> findings;
    lay_out_frames(
        records, 0, s_.facts,
        [&](std::int64_t chunk, std::int64_t file) {
          return videos.at({chunk, file});
        },
        [](const std::string& path) {
          const auto table = video_packets(path);
          return table ? static_cast<std::int64_t>((*table)->decode_of_rank.size()) : std::int64_t{-1};
        },
        findings);
    for (const DatasetProblem& f : findings) note(fmt::format("{} {}", f.code, f.text));
    for (std::size_t i = 0; i < records.size(); ++i) {
      const VideoSpan& span = records[i].videos[0];
      s_.episodes[places[i]].videos[camera] = {videos.at({span.chunk, span.file}), span.first_frame, span.frames};
    }
  }

  /// One episode after the other, file after file; every file ends where an episode ends.
  void place_in_order(std::size_t camera) {
    note(
        fmt::format("camera '{}': the metadata do not say where its frames are; they are taken in the order of files "
                    "and episodes",
                    s_.cameras[camera]));
    std::size_t next = 0;
    for (const auto& [number, path] : files_.videos.at(s_.cameras[camera])) {
      const auto table = video_packets(path);
      const auto frames = table ? static_cast<std::int64_t>((*table)->decode_of_rank.size()) : std::int64_t{0};
      std::int64_t at = 0;
      std::size_t end = next;
      while (end < s_.episodes.size() && at + s_.episodes[end].length <= frames) at += s_.episodes[end++].length;
      if (at != frames || frames == 0) break;  // whose frames follow cannot be told any more
      std::int64_t first = 0;
      for (; next < end; ++next) {
        SourceEpisode& e = s_.episodes[next];
        e.videos[camera] = {path, first, e.length};
        first += e.length;
      }
    }
    for (; next < s_.episodes.size(); ++next) lose_frames(s_.episodes[next], camera);
  }

  DatasetSource s_;
  FoundFiles files_;
  std::map<std::int64_t, Stated> stated_;
  /// Episodes by number, for the notes.
  std::vector<std::int64_t> unlisted_, resized_;
};

}  // namespace

Result<DatasetSource> repair_source(const std::string& root) {
  std::string folder = fs::path(root).lexically_normal().string();
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  try {
    return Repair(folder).run();
  } catch (const nlohmann::json::exception& e) {
    return invalid_argument(fmt::format("{}/meta: {}", folder, e.what()));
  }
}

}  // namespace troupe::data
