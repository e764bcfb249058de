#include "workers/data/episode_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/hash.h"
#include "model/text/unicode.h"
#include "workers/data/lerobot/file_checks.h"
#include "workers/data/language/language.h"

namespace troupe {

namespace {

/// LeRobot's tolerance_s: how far a timestamp step may be from 1/fps. float32 seconds add their own rounding on top.
constexpr double kTimestampTolerance = 1e-4;
constexpr double kFloatRounding = 1.2e-7;

/// One episode's check in progress.
class Check {
 public:
  Check(const EpisodeSource& source, const EpisodeRecord& record) : source_(source), record_(record) {
    out_.episode.index = record.index;
  }

  EpisodeCheck run() {
    check_table();
    check_videos();
    out_.episode.files_hash = xxh3_64(std::string_view(files_));
    return std::move(out_);
  }

 private:
  void problem(const char* code, const std::string& path, std::string text) {
    out_.problems.push_back({code, path, std::move(text)});
  }
  void warning(const char* code, const std::string& path, std::string text) {
    out_.warnings.push_back({code, path, std::move(text)});
  }

  void note_file(const std::string& path, std::int64_t bytes) {
    files_ += fmt::format("{} {}\n", path.substr(std::min(path.size(), source_.root.size())), bytes);
  }

  void check_table() {
    auto path = source_.parquet_path(record_.index);
    if (!path) return problem("D01", source_.root, path.error().message());
    const auto size = require_regular_file(*path);
    if (!size) return problem("D03", *path, size.error().message());
    note_file(*path, *size);
    TableColumns wanted = source_.sample_table();
    wanted.optional_integers = {"frame_index", "index", "episode_index"};
    wanted.optional_vectors = {"timestamp"};
    std::erase(wanted.optional_integers, source_.columns.label_column);
    auto table = read_parquet(*path, wanted);
    if (!table)
      return problem(table.error().code() == Errc::invalid_argument ? "D04" : "D03", *path, table.error().message());
    out_.episode.rows = out_.episode.length = table->rows;
    if (table->rows != record_.length) {
      problem("D04", *path, fmt::format("{} has {} rows; episodes.jsonl says {}", *path, table->rows, record_.length));
    }
    check_widths(*path, *table);
    check_counters(*path, *table);
    check_timestamps(*path, *table);
    check_labels(*path, *table);
  }

  void check_widths(const std::string& path, const EpisodeTable& table) {
    for (const std::string& name : source_.columns.vector_columns()) {
      const VectorColumn& column = table.vectors.at(name);
      const LerobotFeature* feature = source_.info.find(name);
      const auto wanted = static_cast<std::size_t>(feature->shape.empty() ? 1 : feature->shape[0]);
      if (table.rows > 0 && column.width != wanted) {
        problem(
            "D04", path,
            fmt::format("{}: column '{}' has {} values a row; info.json says {}", path, name, column.width, wanted));
      }
    }
  }

  void check_counters(const std::string& path, const EpisodeTable& table) {
    const auto steps = [&](const char* name, std::int64_t step, std::optional<std::int64_t> first) {
      const auto it = table.integers.find(name);
      if (it == table.integers.end() || it->second.empty()) return;
      std::int64_t expected = first.value_or(it->second[0]);
      for (std::size_t i = 0; i < it->second.size(); ++i, expected += step) {
        if (it->second[i] == expected) continue;
        return problem(
            "D04", path,
            fmt::format("{}: column '{}' is {} in row {}; {} is wanted", path, name, it->second[i], i, expected));
      }
    };
    steps("frame_index", 1, 0);
    steps("index", 1, std::nullopt);
    steps("episode_index", 0, record_.index);
  }

  void check_timestamps(const std::string& path, const EpisodeTable& table) {
    const auto it = table.vectors.find("timestamp");
    if (it == table.vectors.end() || it->second.width != 1) return;
    const std::vector<double>& t = it->second.values;
    for (std::size_t i = 1; i < t.size(); ++i) {
      const double off = std::abs(t[i] - t[i - 1] - 1.0 / source_.info.fps);
      if (off <= kTimestampTolerance + kFloatRounding * std::abs(t[i])) continue;
      return warning(
          "D05", path,
          fmt::format("{}: timestamp steps by {:.6f} s into row {}; 1/fps is {:.6f} s (row k is frame k anyway)", path,
                      t[i] - t[i - 1], i, 1.0 / source_.info.fps));
    }
  }

  void check_labels(const std::string& path, const EpisodeTable& table) {
    std::vector<LabelRun>& runs = out_.episode.labels;
    if (source_.columns.label_column.empty()) {
      runs.push_back({0, 0});
      return;
    }
    const auto& labels = table.integers.at(source_.columns.label_column);
    std::set<std::int64_t> seen;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (runs.empty() || runs.back().label != labels[i]) runs.push_back({static_cast<std::int64_t>(i), labels[i]});
      if (seen.insert(labels[i]).second) check_text(path, labels[i]);
    }
  }

  void check_text(const std::string& path, std::int64_t label) {
    const auto task = source_.tasks.find(label);
    if (task == source_.tasks.end()) {
      return problem("D11", path,
                     fmt::format("{}: column '{}' holds {}, which tasks.jsonl does not list", path,
                                 source_.columns.label_column, label));
    }
    auto text = read_instruction(task->second);
    // Text that the cleaning refuses is found here, not in the middle of an epoch.
    if (auto cleaned = text ? clean_prompt(text->text) : Result<std::string>(text.error()); !cleaned) {
      return problem("D11", path, fmt::format("{}: task {}: {}", path, label, cleaned.error().message()));
    }
    if (task->second.empty() || task->second == "not provided") {
      warning("D11", path, fmt::format("{}: task {} is '{}', which says nothing", path, label, task->second));
    }
  }

  void check_videos() {
    for (const NamedColumn& view : source_.columns.views) check_video(view);
  }

  void check_video(const NamedColumn& view) {
    auto path = source_.video_path(record_.index, view);
    if (!path) return problem("D01", source_.root, path.error().message());
    const auto size = require_regular_file(*path);
    if (!size) return problem("D06", *path, size.error().message());
    note_file(*path, *size);
    const auto video = source_.probe(*path);
    if (!video) return problem("D06", *path, video.error().message());
    if (out_.episode.rows > 0) {
      const auto frames = reconcile_frame_count(*path, out_.episode.rows, video->frames);
      if (!frames) return problem("D07", *path, frames.error().message());
      out_.episode.length = std::min(out_.episode.length, *frames);
    }
    if (std::abs(video->fps - source_.info.fps) > 0.01 * source_.info.fps) {
      warning("D08", *path,
              fmt::format("{} runs at {:.3f} frames/s, info.json says {:.3f} (row k is frame k anyway)", *path,
                          video->fps, source_.info.fps));
    }
    Episode& e = out_.episode;
    if (e.view_height == 0) {
      e.view_height = video->height;
      e.view_width = video->width;
    } else if (e.view_height != video->height || e.view_width != video->width) {
      problem("D09", *path,
              fmt::format("{} is {}x{}, the view before it {}x{}; the views of a sample share one size", *path,
                          video->width, video->height, e.view_width, e.view_height));
    }
  }

  const EpisodeSource& source_;
  const EpisodeRecord& record_;
  EpisodeCheck out_;
  std::string files_;
};

}  // namespace

std::vector<std::int64_t> Episode::row_labels() const {
  std::vector<std::int64_t> out(static_cast<std::size_t>(length));
  for (std::size_t r = 0; r < labels.size(); ++r) {
    const std::int64_t end = r + 1 < labels.size() ? std::min(labels[r + 1].first, length) : length;
    for (std::int64_t i = labels[r].first; i < end; ++i) out[static_cast<std::size_t>(i)] = labels[r].label;
  }
  return out;
}

Result<std::string> EpisodeSource::parquet_path(std::int64_t episode) const {
  TROUPE_ASSIGN(const std::string path, fill_path_template(info.data_path, episode / info.chunks_size, episode, ""));
  return root + "/" + path;
}

Result<std::string> EpisodeSource::video_path(std::int64_t episode, const NamedColumn& view) const {
  TROUPE_ASSIGN(const std::string path,
                fill_path_template(info.video_path, episode / info.chunks_size, episode, view.column));
  return root + "/" + path;
}

TableColumns EpisodeSource::sample_table() const {
  TableColumns out;
  out.vectors = columns.vector_columns();
  if (!columns.label_column.empty()) out.integers = {columns.label_column};
  return out;
}

EpisodeCheck check_episode(const EpisodeSource& source, const EpisodeRecord& record) {
  return Check(source, record).run();
}

}  // namespace troupe
