#include "workers/data/toy/toy_tables.h"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <fmt/format.h>
#include <parquet/arrow/writer.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <vector>

namespace troupe {

namespace {

using Json = nlohmann::ordered_json;

Error arrow_error(const std::string& path, const arrow::Status& status) {
  return {Errc::failed_precondition, fmt::format("{}: {}", path, status.ToString())};
}

#define TROUPE_ARROW(expr) \
  if (const arrow::Status troupe_status_ = (expr); !troupe_status_.ok()) return arrow_error(path, troupe_status_)

Result<std::shared_ptr<arrow::Array>> pose_column(const std::string& path, const std::vector<ToyPose>& poses) {
  const auto values = std::make_shared<arrow::FloatBuilder>();
  arrow::FixedSizeListBuilder lists(arrow::default_memory_pool(), values, 4);
  for (const ToyPose& pose : poses) {
    TROUPE_ARROW(lists.Append());
    TROUPE_ARROW(values->AppendValues(pose.data(), 4));
  }
  std::shared_ptr<arrow::Array> array;
  TROUPE_ARROW(lists.Finish(&array));
  return array;
}

template <class Builder, class Value>
Result<std::shared_ptr<arrow::Array>> scalar_column(const std::string& path, std::size_t count, const Value& value) {
  Builder builder;
  for (std::size_t i = 0; i < count; ++i) TROUPE_ARROW(builder.Append(value(static_cast<std::int64_t>(i))));
  std::shared_ptr<arrow::Array> array;
  TROUPE_ARROW(builder.Finish(&array));
  return array;
}

float timestamp_of(const ToyEpisodeRows& rows, std::int64_t row) {
  return static_cast<float>(static_cast<double>(row) / rows.fps);
}

/// Statistics of a column of `width` values per row; std is the population's.
Json stats_of(std::size_t count, std::size_t width,
              const std::function<double(std::size_t row, std::size_t dim)>& value) {
  Json stats = {{"min", Json::array()},
                {"max", Json::array()},
                {"mean", Json::array()},
                {"std", Json::array()},
                {"count", {count}}};
  for (std::size_t d = 0; d < width; ++d) {
    double low = value(0, d), high = low, sum = 0, deviation = 0;
    for (std::size_t r = 0; r < count; ++r) {
      low = std::min(low, value(r, d));
      high = std::max(high, value(r, d));
      sum += value(r, d);
    }
    const double mean = sum / static_cast<double>(count);
    for (std::size_t r = 0; r < count; ++r) deviation += (value(r, d) - mean) * (value(r, d) - mean);
    stats["min"].push_back(low);
    stats["max"].push_back(high);
    stats["mean"].push_back(mean);
    stats["std"].push_back(std::sqrt(deviation / static_cast<double>(count)));
  }
  return stats;
}

/// LeRobot writes whole rates as integers.
Json rate(double fps) { return fps == std::floor(fps) ? Json(static_cast<std::int64_t>(fps)) : Json(fps); }

Json video_feature(const ToyDatasetOptions& o) {
  return {{"dtype", "video"},
          {"shape", {o.height, o.width, 3}},
          {"names", {"height", "width", "channels"}},
          {"info",
           {{"video.height", o.height},
            {"video.width", o.width},
            {"video.channels", 3},
            {"video.fps", rate(o.fps)},
            {"video.codec", "h264"},
            {"video.pix_fmt", "yuv420p"},
            {"video.is_depth_map", false},
            {"has_audio", false}}}};
}

Json pose_feature() {
  return {{"dtype", "float32"}, {"shape", {4}}, {"names", {{"motors", {"shoulder", "elbow", "wrist", "gripper"}}}}};
}

Json scalar_feature(const char* dtype) { return {{"dtype", dtype}, {"shape", {1}}, {"names", nullptr}}; }

}  // namespace

void ToyImageSums::add(const Rgb8View& picture) {
  for (std::int64_t y = 0; y < picture.height; ++y) {
    const std::uint8_t* p = picture.row(y);
    for (std::int64_t x = 0; x < picture.width; ++x, p += 3) {
      for (int c = 0; c < 3; ++c) {
        const double v = p[c] / 255.0;
        sum[c] += v;
        square[c] += v * v;
        low[c] = std::min(low[c], v);
        high[c] = std::max(high[c], v);
      }
    }
  }
  pixels += picture.height * picture.width;
  ++frames;
}

Json ToyImageSums::to_json() const {
  const auto per_channel = [](const std::function<double(int)>& value) {
    Json out = Json::array();
    for (int c = 0; c < 3; ++c) out.push_back({{value(c)}});
    return out;
  };
  const double n = static_cast<double>(std::max<std::int64_t>(1, pixels));
  const auto spread = [&](int c) { return std::sqrt(std::max(0.0, square[c] / n - sum[c] / n * sum[c] / n)); };
  return {{"min", per_channel([&](int c) { return low[c]; })},
          {"max", per_channel([&](int c) { return high[c]; })},
          {"mean", per_channel([&](int c) { return sum[c] / n; })},
          {"std", per_channel(spread)},
          {"count", {frames}}};
}

Result<void> write_toy_table(const std::string& path, const ToyEpisode& episode, const ToyEpisodeRows& rows) {
  const std::size_t n = episode.states.size();
  using Int64 = arrow::Int64Builder;
  TROUPE_ASSIGN(auto state, pose_column(path, episode.states));
  TROUPE_ASSIGN(auto action, pose_column(path, episode.actions));
  TROUPE_ASSIGN(auto timestamp,
                scalar_column<arrow::FloatBuilder>(path, n, [&](auto i) { return timestamp_of(rows, i); }));
  TROUPE_ASSIGN(auto frame_index, scalar_column<Int64>(path, n, [](auto i) { return i; }));
  TROUPE_ASSIGN(auto episode_index, scalar_column<Int64>(path, n, [&](auto) { return rows.episode_index; }));
  TROUPE_ASSIGN(auto index, scalar_column<Int64>(path, n, [&](auto i) { return rows.first_index + i; }));
  TROUPE_ASSIGN(auto task_index, scalar_column<Int64>(path, n, [&](auto) { return episode.target_color; }));
  const auto schema =
      arrow::schema({arrow::field("observation.state", state->type()), arrow::field("action", action->type()),
                     arrow::field("timestamp", arrow::float32()), arrow::field("frame_index", arrow::int64()),
                     arrow::field("episode_index", arrow::int64()), arrow::field("index", arrow::int64()),
                     arrow::field("task_index", arrow::int64())});
  const auto table =
      arrow::Table::Make(schema, {state, action, timestamp, frame_index, episode_index, index, task_index});
  auto file = arrow::io::FileOutputStream::Open(path);
  TROUPE_ARROW(file.status());
  const auto settings = parquet::WriterProperties::Builder().compression(parquet::Compression::SNAPPY)->build();
  TROUPE_ARROW(
      parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), *file, static_cast<std::int64_t>(n), settings));
  TROUPE_ARROW((*file)->Close());
  return {};
}

#undef TROUPE_ARROW

Json toy_table_stats(const ToyEpisode& episode, const ToyEpisodeRows& rows) {
  const std::size_t n = episode.states.size();
  const auto pose = [&](const std::vector<ToyPose>& poses) {
    return stats_of(n, 4, [&](std::size_t r, std::size_t d) { return static_cast<double>(poses[r][d]); });
  };
  const auto scalar = [&](const std::function<double(std::int64_t)>& value) {
    return stats_of(n, 1, [&](std::size_t r, std::size_t) { return value(static_cast<std::int64_t>(r)); });
  };
  return {{"observation.state", pose(episode.states)},
          {"action", pose(episode.actions)},
          {"timestamp", scalar([&](auto r) { return static_cast<double>(timestamp_of(rows, r)); })},
          {"frame_index", scalar([](auto r) { return static_cast<double>(r); })},
          {"episode_index", scalar([&](auto) { return static_cast<double>(rows.episode_index); })},
          {"index", scalar([&](auto r) { return static_cast<double>(rows.first_index + r); })},
          {"task_index", scalar([&](auto) { return static_cast<double>(episode.target_color); })}};
}

Json toy_info(const ToyDatasetOptions& o, std::int64_t total_frames) {
  return {{"codebase_version", "v2.1"},
          {"robot_type", "toy_arm"},
          {"total_episodes", o.episodes},
          {"total_frames", total_frames},
          {"total_tasks", kToyColors.size()},
          {"total_videos", 2 * o.episodes},
          {"total_chunks", (o.episodes + 999) / 1000},
          {"chunks_size", 1000},
          {"fps", rate(o.fps)},
          {"splits", {{"train", fmt::format("0:{}", o.episodes)}}},
          {"data_path", "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"},
          {"video_path", "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4"},
          {"features",
           {{"observation.images.front", video_feature(o)},
            {"observation.images.side", video_feature(o)},
            {"observation.state", pose_feature()},
            {"action", pose_feature()},
            {"timestamp", scalar_feature("float32")},
            {"frame_index", scalar_feature("int64")},
            {"episode_index", scalar_feature("int64")},
            {"index", scalar_feature("int64")},
            {"task_index", scalar_feature("int64")}}}};
}

Json toy_modality() {
  const Json parts = {{"arm", {{"start", 0}, {"end", 3}}}, {"gripper", {{"start", 3}, {"end", 4}}}};
  return {{"state", parts},
          {"action", parts},
          {"video",
           {{"front", {{"original_key", "observation.images.front"}}},
            {"side", {{"original_key", "observation.images.side"}}}}},
          {"annotation", {{"task", {{"original_key", "task_index"}}}}}};
}

}  // namespace troupe
