#include "data/lerobot/lerobot_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/durable_file.h"
#include "base/file_io.h"
#include "data/lerobot/image_sums.h"
#include "data/lerobot/number_table.h"
#include "data/video/video_encoder.h"

namespace troupe::data {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kChunkSize = 1000;  // episodes per folder, as LeRobot has it

/// LeRobot writes whole rates as integers.
Json rate(double fps) { return fps == std::floor(fps) ? Json(static_cast<std::int64_t>(fps)) : Json(fps); }

Json video_feature(const LerobotDescription& d) {
  return {{"dtype", "video"},
          {"shape", {d.height, d.width, 3}},
          {"names", {"height", "width", "channels"}},
          {"info",
           {{"video.height", d.height},
            {"video.width", d.width},
            {"video.channels", 3},
            {"video.fps", rate(d.fps)},
            {"video.codec", "h264"},
            {"video.pix_fmt", "yuv420p"},
            {"video.is_depth_map", false},
            {"has_audio", false}}}};
}

Json column_feature(const LerobotColumn& c) {
  Json names = nullptr;
  if (!c.names.empty()) names = {{"motors", c.names}};
  return {
      {"dtype", c.type == LerobotColumn::Type::boolean ? "bool" : "float32"}, {"shape", {c.width}}, {"names", names}};
}

Json scalar_feature(const char* dtype) { return {{"dtype", dtype}, {"shape", {1}}, {"names", nullptr}}; }

/// Writes one camera of an episode and returns its statistics.
Result<Json> write_video(const std::string& path, const LerobotDescription& d, const LerobotEpisode& episode,
                         std::size_t camera) {
  TROUPE_ASSIGN(
      const auto video,
      VideoEncoder::open(path, {.width = d.width, .height = d.height, .fps = d.fps, .gop = d.gop, .crf = d.crf}));
  ImageSums sums;
  for (std::int64_t row = 0; row < episode.length; ++row) {
    TROUPE_ASSIGN(const Rgb8View image, episode.image(camera, row));
    if (image.height != d.height || image.width != d.width) {
      return invalid_argument(fmt::format("{}: image {} has {}x{} pixels; the dataset has {}x{}", path, row,
                                          image.width, image.height, d.width, d.height));
    }
    sums.add(image);
    TROUPE_TRY(video->write(image));
  }
  TROUPE_TRY(video->finish());
  return sums.to_json();
}

/// All columns of an episode's table, in order.
std::vector<NumberTableColumn> table_columns(const LerobotDescription& d, const LerobotEpisode& episode,
                                             std::int64_t episode_index, std::int64_t first_index) {
  using Type = NumberTableColumn::Type;
  std::vector<NumberTableColumn> columns;
  for (std::size_t c = 0; c < d.columns.size(); ++c) {
    const LerobotColumn& column = d.columns[c];
    const std::span<const float> values = episode.columns[c];
    columns.push_back({.name = column.name,
                       .type = column.type == LerobotColumn::Type::boolean ? Type::boolean : Type::float32,
                       .width = column.width,
                       .values = {values.begin(), values.end()}});
  }
  const auto add = [&](const char* name, Type type, const auto& value) {
    NumberTableColumn column{.name = name, .type = type, .width = 1, .values = {}};
    for (std::int64_t row = 0; row < episode.length; ++row) column.values.push_back(static_cast<double>(value(row)));
    columns.push_back(std::move(column));
  };
  add("timestamp", Type::float32,
      [&](std::int64_t row) { return static_cast<float>(static_cast<double>(row) / d.fps); });
  add("frame_index", Type::int64, [](std::int64_t row) { return row; });
  add("episode_index", Type::int64, [&](std::int64_t) { return episode_index; });
  add("index", Type::int64, [&](std::int64_t row) { return first_index + row; });
  add("task_index", Type::int64, [&](std::int64_t) { return episode.task_index; });
  return columns;
}

}  // namespace

Result<LerobotWriter> LerobotWriter::begin(std::string folder, LerobotDescription description) {
  const LerobotDescription& d = description;
  if (!(d.fps > 0)) return invalid_argument(fmt::format("a dataset of {} rows per second; wanted more than 0", d.fps));
  for (const LerobotColumn& c : d.columns) {
    if (c.width >= 1 && (c.names.empty() || c.names.size() == c.width)) continue;
    return invalid_argument(
        fmt::format("column {} has {} numbers per row and {} names for them", c.name, c.width, c.names.size()));
  }
  if (!d.cameras.empty() && (d.height < 2 || d.width < 2 || d.height % 2 != 0 || d.width % 2 != 0)) {
    return invalid_argument(fmt::format("images of {}x{} pixels; wanted even sides", d.width, d.height));
  }
  return LerobotWriter(std::move(folder), std::move(description));
}

LerobotWriter::LerobotWriter(std::string folder, LerobotDescription description)
    : folder_(std::move(folder)), description_(std::move(description)) {}

std::int64_t LerobotWriter::task_index(const std::string& text) {
  const auto found = std::find(tasks_.begin(), tasks_.end(), text);
  const auto index = std::distance(tasks_.begin(), found);
  if (found == tasks_.end()) tasks_.push_back(text);
  return index;
}

Result<void> LerobotWriter::check(const LerobotEpisode& episode) const {
  if (episode.length < 1 || episode.columns.size() != description_.columns.size()) {
    return invalid_argument(fmt::format("an episode of {} rows with {} columns; wanted at least one row and {} columns",
                                        episode.length, episode.columns.size(), description_.columns.size()));
  }
  if (episode.task_index < 0 || episode.task_index >= static_cast<std::int64_t>(tasks_.size())) {
    return invalid_argument(fmt::format("an episode of task {}; there are {}", episode.task_index, tasks_.size()));
  }
  for (std::size_t c = 0; c < episode.columns.size(); ++c) {
    const std::size_t wanted = static_cast<std::size_t>(episode.length) * description_.columns[c].width;
    if (episode.columns[c].size() == wanted) continue;
    return invalid_argument(fmt::format("column {} has {} numbers for {} rows; wanted {}", description_.columns[c].name,
                                        episode.columns[c].size(), episode.length, wanted));
  }
  return {};
}

Result<void> LerobotWriter::append(const LerobotEpisode& episode) {
  TROUPE_TRY(check(episode));
  const std::string chunk = fmt::format("chunk-{:03d}", episodes_ / kChunkSize),
                    name = fmt::format("episode_{:06d}", episodes_);
  Json stats = Json::object();
  for (std::size_t c = 0; c < description_.cameras.size(); ++c) {
    const std::string videos = fmt::format("{}/videos/{}/{}", folder_, chunk, description_.cameras[c]);
    TROUPE_TRY(make_folders(videos));
    TROUPE_ASSIGN(stats[description_.cameras[c]],
                  write_video(fmt::format("{}/{}.mp4", videos, name), description_, episode, c));
  }
  const std::string tables = fmt::format("{}/data/{}", folder_, chunk);
  TROUPE_TRY(make_folders(tables));
  const auto columns = table_columns(description_, episode, episodes_, frames_);
  TROUPE_TRY(write_number_table(fmt::format("{}/{}.parquet", tables, name), columns));
  for (const NumberTableColumn& column : columns) stats[column.name] = column_statistics(column);
  const Json listed = {{"episode_index", episodes_},
                       {"tasks", {tasks_[static_cast<std::size_t>(episode.task_index)]}},
                       {"length", episode.length}};
  episode_lines_ += listed.dump() + "\n";
  stats_lines_ += Json{{"episode_index", episodes_}, {"stats", stats}}.dump() + "\n";
  ++episodes_;
  frames_ += episode.length;
  return {};
}

std::string LerobotWriter::info() const {
  const LerobotDescription& d = description_;
  Json features = Json::object();
  for (const std::string& camera : d.cameras) features[camera] = video_feature(d);
  for (const LerobotColumn& column : d.columns) features[column.name] = column_feature(column);
  features["timestamp"] = scalar_feature("float32");
  for (const char* name : {"frame_index", "episode_index", "index", "task_index"})
    features[name] = scalar_feature("int64");
  Json video_path = nullptr;
  if (!d.cameras.empty()) video_path = "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4";
  const Json info = {{"codebase_version", "v2.1"},
                     {"robot_type", d.robot_type},
                     {"total_episodes", episodes_},
                     {"total_frames", frames_},
                     {"total_tasks", tasks_.size()},
                     {"total_videos", static_cast<std::int64_t>(d.cameras.size()) * episodes_},
                     {"total_chunks", (episodes_ + kChunkSize - 1) / kChunkSize},
                     {"chunks_size", kChunkSize},
                     {"fps", rate(d.fps)},
                     {"splits", {{"train", fmt::format("0:{}", episodes_)}}},
                     {"data_path", "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"},
                     {"video_path", video_path},
                     {"features", features}};
  return info.dump(2) + "\n";
}

Result<void> LerobotWriter::finish() {
  if (episodes_ == 0) return Error{Errc::failed_precondition, "a dataset without episodes cannot be written"};
  TROUPE_TRY(make_folders(folder_ + "/meta"));
  std::string tasks;
  for (std::size_t t = 0; t < tasks_.size(); ++t) tasks += Json{{"task_index", t}, {"task", tasks_[t]}}.dump() + "\n";
  TROUPE_TRY(write_file_synced(folder_ + "/meta/episodes.jsonl", episode_lines_));
  TROUPE_TRY(write_file_synced(folder_ + "/meta/episodes_stats.jsonl", stats_lines_));
  TROUPE_TRY(write_file_synced(folder_ + "/meta/tasks.jsonl", tasks));
  return write_file_synced(folder_ + "/meta/info.json", info());
}

}  // namespace troupe::data
