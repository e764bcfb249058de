#include "bench/data/generated_set.h"

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/io/file.h>
#include <arrow/table.h>
#include <fmt/format.h>
#include <parquet/arrow/writer.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "bench/support/failures.h"
#include "data/video/video_encoder.h"

namespace troupe::bench {

namespace {

namespace fs = std::filesystem;

const char* const kCameraKeys[] = {"observation.images.left", "observation.images.right", "observation.images.wrist"};
constexpr std::int64_t kDims = 7, kTasks = 50;
constexpr double kFps = 15;

void check(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

void write_text(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream out(path, std::ios::binary);
  if (!(out << text)) throw std::runtime_error(path + " cannot be written");
}

void write_columns(const std::string& path, const std::vector<std::pair<std::string, arrow::ArrayBuilder*>>& columns) {
  fs::create_directories(fs::path(path).parent_path());
  std::vector<std::shared_ptr<arrow::Field>> fields;
  std::vector<std::shared_ptr<arrow::Array>> arrays;
  for (const auto& [name, builder] : columns) {
    arrays.push_back(builder->Finish().ValueOrDie());
    fields.push_back(arrow::field(name, arrays.back()->type()));
  }
  auto out = arrow::io::FileOutputStream::Open(path).ValueOrDie();
  const auto table = arrow::Table::Make(arrow::schema(fields), arrays);
  check(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), out, 1 << 17));
  check(out->Close());
}

/// Rows of episodes first, first + 1, ...: a table without the counters that would tie it to one episode.
void write_rows(const std::string& path, std::int64_t first, std::int64_t episodes) {
  auto values = std::make_shared<arrow::FloatBuilder>(), more = std::make_shared<arrow::FloatBuilder>();
  arrow::ListBuilder state(arrow::default_memory_pool(), values), action(arrow::default_memory_pool(), more);
  arrow::FloatBuilder time;
  arrow::Int64Builder frame, task;
  for (std::int64_t e = first; e < first + episodes; ++e) {
    for (std::int64_t r = 0; r < GeneratedSet::length(e); ++r) {
      check(state.Append());
      check(action.Append());
      for (std::int64_t d = 0; d < kDims; ++d) {
        check(values->Append(static_cast<float>(r * (d + 1) % 97) / 97));
        check(more->Append(static_cast<float>((r + 1) * (d + 1) % 97) / 97));
      }
      check(time.Append(static_cast<float>(static_cast<double>(r) / kFps)));
      check(frame.Append(r));
      check(task.Append(e % kTasks));
    }
  }
  write_columns(path, {{"observation.state", &state},
                       {"action", &action},
                       {"timestamp", &time},
                       {"frame_index", &frame},
                       {"task_index", &task}});
}

/// A grey square that brightens.
void write_video(const std::string& path, std::int64_t frames) {
  const auto encoder = must(VideoEncoder::open(path, {.width = 64, .height = 64, .fps = kFps, .gop = 30}));
  std::vector<std::uint8_t> pixels(64 * 64 * 3);
  for (std::int64_t f = 0; f < frames; ++f) {
    std::fill(pixels.begin(), pixels.end(), static_cast<std::uint8_t>(f));
    must(encoder->write(Rgb8View{pixels.data(), 64, 64, 3 * 64}));
  }
  must(encoder->finish());
}

std::int64_t frames_of_video(const std::string& version, const std::string& path) {
  if (version == "v3.0") {
    std::int64_t sum = 0;
    for (std::int64_t e = 0; e < GeneratedSet::kEpisodesPerVideo; ++e) sum += GeneratedSet::length(e);
    return sum;
  }
  const std::size_t digits = path.rfind("episode_") + 8;
  return GeneratedSet::length(std::stoll(path.substr(digits, 6)));
}

}  // namespace

VideoProbe GeneratedSet::probe(const std::string& version) {
  return [version](const std::string& path) -> Result<VideoInfo> {
    return VideoInfo{.width = 64,
                     .height = 64,
                     .frames = frames_of_video(version, path),
                     .fps = kFps,
                     .codec = "h264",
                     .pix_fmt = "yuv420p"};
  };
}

DatasetSpec GeneratedSet::spec(const std::string& root) {
  DatasetSpec spec;
  spec.path = root;
  spec.embodiment.views = {kCameraKeys[0], kCameraKeys[1], kCameraKeys[2]};
  spec.embodiment.layout = "droid";
  spec.embodiment.prompt = "none";
  return spec;
}

GeneratedSet::GeneratedSet(const std::string& folder, const std::string& version, std::int64_t episodes)
    : root_(fmt::format("{}/{}-{}", folder, version, episodes)) {
  if (episodes % kEpisodesPerVideo != 0 || (episodes > kEpisodesPerTable && episodes % kEpisodesPerTable != 0)) {
    throw std::runtime_error(fmt::format("{} episodes: a multiple of 100 is wanted, of 500 above 500", episodes));
  }
  for (std::int64_t e = 0; e < episodes; ++e) total_rows_ += length(e);
  write_info(version, episodes);
  version == "v3.0" ? write_v3(episodes) : write_v2(episodes);
}

void GeneratedSet::write_info(const std::string& version, std::int64_t episodes) const {
  const bool v3 = version == "v3.0";
  std::string features;
  for (const char* key : kCameraKeys)
    features += fmt::format(
        R"("{}": {{"dtype": "video", "shape": [64, 64, 3], "names": ["height", "width", "channels"]}}, )", key);
  for (const char* key : {"observation.state", "action"})
    features += fmt::format(R"("{}": {{"dtype": "float32", "shape": [{}]}}, )", key, kDims);
  features += R"("timestamp": {"dtype": "float32", "shape": [1]}, )"
              R"("frame_index": {"dtype": "int64", "shape": [1]}, "task_index": {"dtype": "int64", "shape": [1]})";
  write_text(
      root_ + "/meta/info.json",
      fmt::format(R"({{"codebase_version": "{}", "robot_type": "generated", "total_episodes": {}, "total_frames": {}, )"
                  R"("total_tasks": {}, "chunks_size": 1000, )"
                  R"("fps": {}, "data_path": "{}", "video_path": "{}", "features": {{{}}}}})",
                  version, episodes, total_rows_, kTasks, kFps,
                  v3 ? "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
                     : "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
                  v3 ? "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
                     : "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4",
                  features));
  // statistics as a recorded dataset has them, so that opening need not pool every table
  std::string stats;
  for (const char* key : {"observation.state", "action"}) {
    stats += fmt::format("{}\"{}\": {{", stats.empty() ? "" : ", ", key);
    const std::pair<const char*, double> values[] = {{"min", 0},    {"max", 0.99}, {"mean", 0.5},
                                                     {"std", 0.29}, {"q01", 0.01}, {"q99", 0.98}};
    for (const auto& [name, value] : values) {
      stats += fmt::format("\"{}\": [", name);
      for (std::int64_t d = 0; d < kDims; ++d) stats += fmt::format("{}{}", d == 0 ? "" : ",", value);
      stats += std::string(name) == "q99" ? "]" : "], ";
    }
    stats += "}";
  }
  write_text(root_ + "/meta/stats.json", "{" + stats + "}");
}

void GeneratedSet::write_v2(std::int64_t episodes) const {
  std::string lines, tasks;
  for (std::int64_t t = 0; t < kTasks; ++t)
    tasks += fmt::format("{{\"task_index\": {}, \"task\": \"move object {} to its place\"}}\n", t, t);
  write_text(root_ + "/meta/tasks.jsonl", tasks);
  // real frames, one file a length
  fs::create_directories(root_ + "/sources");
  for (std::int64_t k = 0; k < kLengths; ++k) write_video(fmt::format("{}/sources/{}.mp4", root_, k), length(k));
  for (std::int64_t k = 0; k < kLengths; ++k) write_rows(fmt::format("{}/sources/{}.parquet", root_, k), k, 1);
  for (std::int64_t e = 0; e < episodes; ++e) {
    lines += fmt::format("{{\"episode_index\": {}, \"tasks\": [\"move object {} to its place\"], \"length\": {}}}\n", e,
                         e % kLengths, length(e));
    const std::string data = fmt::format("{}/data/chunk-{:03d}", root_, e / 1000);
    if (e % 1000 == 0) fs::create_directories(data);
    fs::create_hard_link(fmt::format("{}/sources/{}.parquet", root_, e % kLengths),
                         fmt::format("{}/episode_{:06d}.parquet", data, e));
    for (const char* key : kCameraKeys) {
      const std::string videos = fmt::format("{}/videos/chunk-{:03d}/{}", root_, e / 1000, key);
      if (e % 1000 == 0) fs::create_directories(videos);
      fs::create_hard_link(fmt::format("{}/sources/{}.mp4", root_, e % kLengths),
                           fmt::format("{}/episode_{:06d}.mp4", videos, e));
    }
  }
  write_text(root_ + "/meta/episodes.jsonl", lines);
}

void GeneratedSet::write_v3(std::int64_t episodes) const {
  arrow::Int64Builder task_index;
  arrow::StringBuilder task;
  for (std::int64_t t = 0; t < kTasks; ++t) {
    check(task_index.Append(t));
    check(task.Append(fmt::format("move object {} to its place", t)));
  }
  write_columns(root_ + "/meta/tasks.parquet", {{"task_index", &task_index}, {"task", &task}});

  const std::int64_t per_table = std::min(episodes, kEpisodesPerTable);
  write_rows(root_ + "/sources/rows.parquet", 0, per_table);
  write_text(root_ + "/sources/videos.mp4", "videos of 100 episodes\n");
  const auto link = [&](const std::string& source, const std::string& target) {
    fs::create_directories(fs::path(target).parent_path());
    fs::create_hard_link(root_ + "/sources/" + source, target);
  };
  for (std::int64_t f = 0; f < episodes / per_table; ++f)
    link("rows.parquet", fmt::format("{}/data/chunk-{:03d}/file-{:03d}.parquet", root_, f / 1000, f % 1000));
  for (std::int64_t f = 0; f < episodes / kEpisodesPerVideo; ++f) {
    for (const char* key : kCameraKeys)
      link("videos.mp4", fmt::format("{}/videos/{}/chunk-{:03d}/file-{:03d}.mp4", root_, key, f / 1000, f % 1000));
  }

  arrow::Int64Builder index, rows, data_chunk, data_file, from, to, video_chunk[kCameras], video_file[kCameras];
  arrow::DoubleBuilder video_from[kCameras], video_to[kCameras];
  auto text = std::make_shared<arrow::StringBuilder>();
  arrow::ListBuilder tasks(arrow::default_memory_pool(), text);
  std::int64_t row = 0, in_video = 0;
  for (std::int64_t e = 0; e < episodes; ++e) {
    if (e % kEpisodesPerVideo == 0) in_video = 0;
    check(index.Append(e));
    check(rows.Append(length(e)));
    check(tasks.Append());
    check(text->Append(fmt::format("move object {} to its place", e % per_table % kTasks)));
    check(data_chunk.Append(e / per_table / 1000));
    check(data_file.Append(e / per_table % 1000));
    check(from.Append(row));
    check(to.Append(row + length(e)));
    for (std::int64_t c = 0; c < kCameras; ++c) {
      check(video_chunk[c].Append(e / kEpisodesPerVideo / 1000));
      check(video_file[c].Append(e / kEpisodesPerVideo % 1000));
      check(video_from[c].Append(static_cast<double>(in_video) / kFps));
      check(video_to[c].Append(static_cast<double>(in_video + length(e)) / kFps));
    }
    row += length(e);
    in_video += length(e);
  }
  std::vector<std::pair<std::string, arrow::ArrayBuilder*>> columns = {{"episode_index", &index},
                                                                       {"tasks", &tasks},
                                                                       {"length", &rows},
                                                                       {"data/chunk_index", &data_chunk},
                                                                       {"data/file_index", &data_file},
                                                                       {"dataset_from_index", &from},
                                                                       {"dataset_to_index", &to}};
  for (std::int64_t c = 0; c < kCameras; ++c) {
    const std::string prefix = fmt::format("videos/{}/", kCameraKeys[c]);
    columns.emplace_back(prefix + "chunk_index", &video_chunk[c]);
    columns.emplace_back(prefix + "file_index", &video_file[c]);
    columns.emplace_back(prefix + "from_timestamp", &video_from[c]);
    columns.emplace_back(prefix + "to_timestamp", &video_to[c]);
  }
  write_columns(root_ + "/meta/episodes/chunk-000/file-000.parquet", columns);
}

}  // namespace troupe::bench
