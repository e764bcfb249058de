#include "data/lerobot/episode_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/hash.h"
#include "data/language/language.h"
#include "data/language/unicode.h"
#include "data/lerobot/file_checks.h"
#include "data/lerobot/probe_cache.h"
#include "data/video/still_image.h"

namespace troupe::data {

namespace {

/// LeRobot's tolerance_s: how far a timestamp step may be from 1/fps. float32 seconds add their own rounding on top.
constexpr double kTimestampTolerance = 1e-4;
constexpr double kFloatRounding = 1.2e-7;

/// One episode's check in progress.
class Check {
 public:
  Check(const EpisodeSource& source, std::size_t place)
      : source_(source), record_(source.files->episodes()[place]), place_(place) {
    out_.episode.index = record_.index;
    out_.episode.place = place;
  }

  EpisodeCheck run() {
    check_table();
    out_.table_sound = out_.problems.empty();
    for (const NamedColumn& view : source_.columns.views) check_view(view);
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

  /// `first`: where the episode begins in a file of many.
  void note_file(const std::string& path, std::int64_t bytes, std::int64_t first) {
    const std::string name = path.substr(std::min(path.size(), source_.root().size()));
    files_ +=
        source_.info().is_v3() ? fmt::format("{} {} {}\n", name, bytes, first) : fmt::format("{} {}\n", name, bytes);
  }

  void check_table() {
    const auto rows = source_.files->rows(place_);
    if (!rows) return problem("D01", source_.root(), rows.error().message());
    const std::string& path = rows->path;
    first_row_ = rows->first_row;
    const auto size = require_regular_file(path);
    if (!size) return problem("D03", path, size.error().message());
    note_file(path, *size, first_row_);
    TableColumns wanted = source_.sample_table();
    wanted.optional_vectors = {"frame_index", "index", "episode_index", "timestamp"};
    std::erase_if(wanted.optional_vectors, [&](const std::string& name) {
      return std::find(wanted.vectors.begin(), wanted.vectors.end(), name) != wanted.vectors.end() ||
             std::find(wanted.integers.begin(), wanted.integers.end(), name) != wanted.integers.end();
    });
    // A v2 file is one episode: all of its rows, so that their number can be compared.
    const RowRange range = source_.info().is_v3() ? RowRange{first_row_, record_.length} : RowRange{};
    const auto table = source_.tables->read(path, wanted, range);
    if (!table)
      return problem(table.error().code() == Errc::invalid_argument ? "D04" : "D03", path, table.error().message());
    out_.episode.rows = out_.episode.length = table->rows;
    if (table->rows != record_.length) {
      problem("D04", path, fmt::format("{} has {} rows; episodes.jsonl says {}", path, table->rows, record_.length));
    }
    check_widths(path, *table);
    check_counters(path, *table);
    check_end(path);
    check_timestamps(path, *table);
    check_labels(path, *table);
  }

  void check_widths(const std::string& path, const EpisodeTable& table) {
    for (const std::string& name : source_.columns.vector_columns()) {
      const VectorColumn& column = table.vectors.at(name);
      const LerobotFeature* feature = source_.info().find(name);
      const auto wanted = static_cast<std::size_t>(feature->width());
      if (table.rows > 0 && column.width != wanted) {
        problem(
            "D04", path,
            fmt::format("{}: column '{}' has {} values a row; info.json says {}", path, name, column.width, wanted));
      }
    }
  }

  void check_counters(const std::string& path, const EpisodeTable& table) {
    const auto steps = [&](const char* name, double step, std::optional<double> first) {
      if (const auto bad = table.left_out.find(name); bad != table.left_out.end())
        return problem("D04", path, bad->second);
      const auto it = table.vectors.find(name);
      if (it == table.vectors.end() || it->second.values.empty()) return;
      const std::vector<double>& values = it->second.values;
      if (it->second.width != 1) {
        return problem("D04", path,
                       fmt::format("{}: column '{}' has {} values a row; one is wanted", path, name, it->second.width));
      }
      double expected = first.value_or(values[0]);
      for (std::size_t i = 0; i < values.size(); ++i, expected += step) {
        if (values[i] == expected) continue;
        return problem("D04", path,
                       fmt::format("{}: column '{}' is {} in row {}; {} is wanted", path, name, values[i],
                                   first_row_ + static_cast<std::int64_t>(i), expected));
      }
    };
    steps("frame_index", 1, 0);
    // In a file of many episodes something has to say whose rows these are.
    const bool named = !source_.info().is_v3() || table.vectors.count("episode_index") != 0;
    steps("index", 1, named ? std::nullopt : std::optional(static_cast<double>(record_.dataset_from)));
    steps("episode_index", 0, static_cast<double>(record_.index));
  }

  /// In a file of many episodes: does the next row belong to another one? Else `length` is too small.
  void check_end(const std::string& path) {
    if (!source_.info().is_v3()) return;
    TableColumns wanted;
    wanted.optional_vectors = {"episode_index"};
    const std::int64_t next = first_row_ + record_.length;
    const auto table = source_.tables->read(path, wanted, {next, 1});
    if (!table) return;  // the file ends here
    const auto it = table->vectors.find("episode_index");
    if (it == table->vectors.end() || it->second.values.empty()) return;
    if (it->second.values[0] != static_cast<double>(record_.index)) return;
    problem("D04", path,
            fmt::format("{}: row {} belongs to episode {} too; meta/episodes says that it has {} rows, from row {} on",
                        path, next, record_.index, record_.length, first_row_));
  }

  void check_timestamps(const std::string& path, const EpisodeTable& table) {
    const auto it = table.vectors.find("timestamp");
    if (const auto bad = table.left_out.find("timestamp"); bad != table.left_out.end())
      return warning("D05", path, bad->second + " (row k is frame k anyway)");
    if (it == table.vectors.end() || it->second.width != 1) return;
    const std::vector<double>& t = it->second.values;
    for (std::size_t i = 1; i < t.size(); ++i) {
      const double off = std::abs(t[i] - t[i - 1] - 1.0 / source_.info().fps);
      if (off <= kTimestampTolerance + kFloatRounding * std::abs(t[i])) continue;
      return warning(
          "D05", path,
          fmt::format("{}: timestamp steps by {:.6f} s into row {}; 1/fps is {:.6f} s (row k is frame k anyway)", path,
                      t[i] - t[i - 1], i, 1.0 / source_.info().fps));
    }
  }

  void check_labels(const std::string& path, const EpisodeTable& table) {
    const std::string& column = source_.columns.label_column;
    std::vector<LabelRun>& runs = out_.episode.labels;
    if (column.empty()) runs.push_back({0, 0});
    for (const std::string& name : source_.columns.label_columns()) {
      const auto& labels = table.integers.at(name);
      std::set<std::int64_t> seen;
      for (std::size_t i = 0; i < labels.size(); ++i) {
        if (name == column && (runs.empty() || runs.back().label != labels[i]))
          runs.push_back({static_cast<std::int64_t>(i), labels[i]});
        if (seen.insert(labels[i]).second) check_text(path, name, labels[i]);
      }
    }
    if (auto differs = check_listed_tasks(source_, out_.episode)) out_.warnings.push_back(std::move(*differs));
  }

  void check_text(const std::string& path, const std::string& column, std::int64_t label) {
    const auto task = source_.tasks().find(label);
    if (task == source_.tasks().end()) {
      return problem("D11", path,
                     fmt::format("{}: column '{}' holds {}, which {} does not list", path, column, label,
                                 source_.info().is_v3() ? "tasks.parquet" : "tasks.jsonl"));
    }
    auto text = read_instruction(task->second);
    // Text that the cleaning refuses is found here, not in the middle of training.
    if (auto cleaned = text ? clean_prompt(text->text) : Result<std::string>(text.error()); !cleaned) {
      return problem("D11", path, fmt::format("{}: task {}: {}", path, label, cleaned.error().message()));
    }
    const bool says_nothing = task->second.empty() || task->second == "not provided";
    // A paraphrase may be missing; the sampler draws among the others.
    if (says_nothing && column == source_.columns.label_column) {
      warning("D11", path, fmt::format("{}: task {} is '{}', which says nothing", path, label, task->second));
    }
  }

  void check_view(const NamedColumn& view) {
    const auto images = source_.files->images(place_, view.column);
    if (!images) return problem("D01", source_.root(), images.error().message());
    if (images->is_video()) {
      check_video(view, *images);
    } else {
      check_images(*images);
    }
  }

  /// Every row has a frame; the first one is decoded and gives the size, which all others have by their headers.
  void check_images(const ImageSource& images) {
    if (out_.episode.rows == 0) return;  // an unreadable table is reported already
    StillImage first;
    std::string odd;
    const auto checked = source_.tables->visit_images(
        images.path, images.column, {images.first, out_.episode.rows},
        [&](std::int64_t row, std::span<const std::byte> bytes) -> Result<void> {
          if (row != images.first) {
            const auto size = still_image_size(bytes);
            if (odd.empty() && size && *size != ImageSize{first.height, first.width})
              odd = fmt::format("row {} is {}x{}", row, size->width, size->height);
            return {};
          }
          StillImageDecoder decoder;
          return decoder.decode(bytes, fmt::format("{} column '{}' row {}", images.path, images.column, row), first);
        });
    if (!checked) return problem("D06", images.path, checked.error().message());
    out_.image_sizes[images.column] = {first.height, first.width};
    if (!odd.empty()) {
      problem(
          "D06", images.path,
          fmt::format("{} column '{}': {}, the episode's first image {}x{}; one view has one size, mend the image or "
                      "leave the episode out",
                      images.path, images.column, odd, first.width, first.height));
    }
    check_size(fmt::format("{} column '{}'", images.path, images.column), images.path, first.height, first.width);
  }

  void check_video(const NamedColumn& view, const ImageSource& images) {
    const std::string& path = images.path;
    const auto size = require_regular_file(path);
    if (!size) return problem("D06", path, size.error().message());
    note_file(path, *size, images.first);
    const auto video = source_.probe(path);
    if (!video) return problem("D06", path, video.error().message());
    if (out_.episode.rows > 0 && !check_span(view, images, *video)) return;
    check_times(path, *video);
    check_format(path, *video);
    check_size(path, path, video->height, video->width);
  }

  /// Does every row have a frame? One may be missing at the tail.
  bool check_span(const NamedColumn& view, const ImageSource& images, const VideoInfo& video) {
    const VideoSpan* span = source_.files->video_span(place_, view.column);
    std::int64_t there = std::max<std::int64_t>(0, video.frames - images.first);
    const bool shared = source_.info().is_v3();
    if (shared && span->frames >= 0) there = std::min(there, span->frames);
    if (shared) there = std::min(there, out_.episode.rows);  // what follows are other episodes' frames
    const auto frames = reconcile_frame_count(images.path, out_.episode.rows, there);
    if (!frames) {
      std::string text = frames.error().message();
      if (shared)
        text +=
            fmt::format(" (episode {} from frame {} on; the file has {})", record_.index, images.first, video.frames);
      problem("D07", images.path, std::move(text));
      return false;
    }
    out_.episode.length = std::min(out_.episode.length, *frames);
    return true;
  }

  void check_times(const std::string& path, const VideoInfo& video) {
    const double fps = source_.info().fps;
    if (std::abs(video.fps - fps) > 0.01 * fps) {
      warning("D08", path,
              fmt::format("{} runs at {:.3f} frames/s, info.json says {:.3f} (row k is frame k anyway)", path,
                          video.fps, fps));
    }
    std::string odd;
    const auto add = [&](const std::string& text) { odd += (odd.empty() ? "" : ", ") + text; };
    if (video.uneven) add("its frames are not equally spaced in time");
    if (video.hidden > 0) add(fmt::format("its edit list hides {} frames", video.hidden));
    if (video.first_seconds < 0) add(fmt::format("its first frame is shown at {:.6f} s", video.first_seconds));
    if (video.first_seconds * video.fps >= 1) {
      add(fmt::format("its first frame is shown only after {:.6f} s", video.first_seconds));
    }
    if (!odd.empty()) warning("D10", path, fmt::format("{}: {} (row k is the k-th frame shown anyway)", path, odd));
  }

  /// What the decoder refuses is found here, not at the first sample.
  void check_format(const std::string& path, const VideoInfo& video) {
    if (!video.codec.empty() && !has_decoder(video.codec)) {
      return problem(
          "D06", path,
          fmt::format("{}: it is coded as {}, which nothing here decodes: encode the video again", path, video.codec));
    }
    const std::string& format = video.pix_fmt;
    if (format.empty() || format == "unknown" || format == "yuv420p" || format == "yuvj420p") return;
    const bool depth = format.starts_with("gray") && format != "gray";
    problem("D06", path,
            fmt::format("{}: frames are {}; 8-bit yuv420p is decoded: {}", path, format,
                        depth ? "a depth map is no view, so name other cameras in data.embodiment.views"
                              : "encode the video again (troupe convert dataset --video_mode reencode)"));
  }

  void check_size(const std::string& what, const std::string& path, std::int64_t height, std::int64_t width) {
    Episode& e = out_.episode;
    if (e.view_height == 0) {
      e.view_height = height;
      e.view_width = width;
    } else if (e.view_height != height || e.view_width != width) {
      problem("D09", path,
              fmt::format("{} is {}x{}, the view before it {}x{}; the views of a sample share one size", what, width,
                          height, e.view_width, e.view_height));
    }
  }

  const EpisodeSource& source_;
  const EpisodeRecord& record_;
  std::size_t place_;
  std::int64_t first_row_ = 0;
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

EpisodeSource EpisodeSource::make(std::shared_ptr<const LerobotDataset> files, SampleColumns columns,
                                  VideoProbe probe) {
  return {.files = std::move(files),
          .columns = std::move(columns),
          .probe = cached_probe(std::move(probe)),
          .tables = std::make_shared<ParquetFiles>()};
}

TableColumns EpisodeSource::sample_table() const {
  TableColumns out;
  out.vectors = columns.vector_columns();
  out.integers = columns.label_columns();
  return out;
}

Result<EpisodeTable> EpisodeSource::read_table(const Episode& episode, const TableColumns& wanted) const {
  TROUPE_ASSIGN(const RowSource rows, files->rows(episode.place));
  return tables->read(rows.path, wanted, {rows.first_row, episode.rows});
}

Result<ImageSource> EpisodeSource::images(const Episode& episode, const NamedColumn& view) const {
  return files->images(episode.place, view.column);
}

std::optional<DatasetProblem> check_listed_tasks(const EpisodeSource& source, const Episode& episode) {
  const EpisodeRecord& record = source.files->episodes()[episode.place];
  if (source.columns.label_column != "task_index" || record.tasks.empty()) return std::nullopt;
  for (const LabelRun& run : episode.labels) {
    const auto task = source.tasks().find(run.label);
    if (task == source.tasks().end() ||
        std::find(record.tasks.begin(), record.tasks.end(), task->second) != record.tasks.end())
      continue;
    const std::string path = source.root() + (source.info().is_v3() ? "/meta/episodes" : "/meta/episodes.jsonl");
    return DatasetProblem{
        "D02", path,
        fmt::format("{}: the tasks of episode {} lack that of its rows, task_index {}; the rows count", path,
                    record.index, run.label)};
  }
  return std::nullopt;
}

EpisodeCheck check_episode(const EpisodeSource& source, std::size_t place) { return Check(source, place).run(); }

}  // namespace troupe::data
