#pragma once

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/io/file.h>
#include <arrow/table.h>
#include <parquet/arrow/writer.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "configs/job_config.h"
#include "data/lerobot/episode_check.h"
#include "data/sample/sample_builder.h"
#include "tests/support/scratch_folder.h"

namespace troupe::testing {

/// Columns of one episode as a test wants them; vectors of three values.
struct TinyEpisode {
  std::int64_t rows = 40;
  std::function<std::int64_t(std::int64_t)> task = [](std::int64_t) { return 0; };
  std::function<double(std::int64_t row, std::int64_t dim)> state = [](std::int64_t row, std::int64_t dim) {
    return 0.25 * static_cast<double>(row) + static_cast<double>(dim);
  };
  std::function<double(std::int64_t row, std::int64_t dim)> action = [](std::int64_t row, std::int64_t dim) {
    return 0.25 * static_cast<double>(row + 1) - static_cast<double>(dim);
  };
  bool fixed_size_lists = false;
  bool float64 = false;
  /// Label column annotation.paraphrase; every episode has it or none.
  std::function<std::int64_t(std::int64_t)> paraphrase{};
};

/// A LeRobot v2.1 dataset of real Parquet files in a folder of its own, removed at the end. Its videos are one-line
/// text files "frames height width", which probe() and read_clip() understand: frames whose every pixel is (frame,
/// view, 7).
class TinyDataset {
 public:
  static constexpr std::int64_t kWidth = 3, kFps = 10, kHeightPixels = 12, kWidthPixels = 16;

  explicit TinyDataset(std::vector<TinyEpisode> episodes = std::vector<TinyEpisode>(3))
      : episodes_(std::move(episodes)) {
    write_info();
    write_lines("meta/tasks.jsonl",
                {R"({"task_index": 0, "task": "Lift the Cup"})", R"({"task_index": 1, "task": "put it down"})"});
    std::vector<std::string> lines;
    std::int64_t index = 0;
    for (std::size_t i = 0; i < episodes_.size(); ++i) {
      lines.push_back(R"({"episode_index": )" + std::to_string(i) + R"(, "tasks": [], "length": )" +
                      std::to_string(episodes_[i].rows) + "}");
      write_parquet(i, episodes_[i], index);
      index += episodes_[i].rows;
      for (const char* view : {"left", "right"}) write_video(i, view, episodes_[i].rows);
    }
    write_lines("meta/episodes.jsonl", lines);
  }

  const std::string& root() const { return root_; }
  std::string parquet(std::size_t episode) const {
    return root_ + "/data/chunk-000/episode_00000" + std::to_string(episode) + ".parquet";
  }
  std::string video(std::size_t episode, const std::string& view = "left") const {
    return root_ + "/videos/chunk-000/observation.images." + view + "/episode_00000" + std::to_string(episode) + ".mp4";
  }

  /// Two blocks of four actions, four rows apart, two frames each: full windows need nine rows.
  JobConfig job() const {
    JobConfig job;
    job.data.sets = {{root_, 1.0}};
    job.data.embodiment.layout = "horizontal";
    job.data.embodiment.prompt = "none";
    job.data.window = {.chunks = 2, .macro_stride = 4, .action_horizon = 4, .video_offsets = {0, 2}};
    job.data.image.height = 6;
    job.data.image.width = 8;
    job.model.dit.action_dim = 5;
    job.model.dit.max_state_dim = 4;
    job.model.text_encoder.max_length = 6;
    return job;
  }

  static Result<VideoInfo> probe(const std::string& path) {
    std::ifstream in(path);
    VideoInfo info;
    info.fps = kFps;
    if (!(in >> info.frames >> info.height >> info.width)) return Error{Errc::data_loss, path + ": moov is missing"};
    return info;
  }
  static DatasetOptions options() { return {.probe = probe, .threads = 2}; }

  static Result<void> read_clip(const std::string& path, std::span<const std::int64_t> frames,
                                const ClipDecoder::RgbSink& sink, ClipDecoder::Deadline) {
    const auto info = probe(path);
    if (!info) return info.error();
    const std::uint8_t view = path.find("right") != std::string::npos ? 1 : 0;
    for (std::size_t i = 0; i < frames.size(); ++i) {
      std::vector<std::uint8_t> pixels;
      for (std::int64_t p = 0; p < info->height * info->width; ++p) {
        pixels.insert(pixels.end(), {static_cast<std::uint8_t>(frames[i]), view, 7});
      }
      const Rgb8View image{pixels.data(), info->height, info->width, 3 * info->width};
      TROUPE_TRY(sink(i, image));
    }
    return {};
  }

  void write_video(std::size_t episode, const std::string& view, std::int64_t frames,
                   std::int64_t height = kHeightPixels) const {
    write_lines(std::filesystem::relative(video(episode, view), root_).string(),
                {std::to_string(frames) + " " + std::to_string(height) + " " + std::to_string(kWidthPixels)});
  }
  void write_lines(const std::string& name, const std::vector<std::string>& lines) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + "/" + name).parent_path());
    std::ofstream out(root_ + "/" + name);
    for (const std::string& line : lines) out << line << "\n";
  }

  /// Writes episode `i`'s table again.
  void write_parquet(std::size_t i, const TinyEpisode& e, std::int64_t first_index) const {
    arrow::Int64Builder frame, index, episode, task;
    arrow::FloatBuilder time;
    for (std::int64_t r = 0; r < e.rows; ++r) {
      check(frame.Append(r));
      check(index.Append(first_index + r));
      check(episode.Append(static_cast<std::int64_t>(i)));
      check(task.Append(e.task(r)));
      check(time.Append(static_cast<float>(r) / kFps));
    }
    std::vector<std::shared_ptr<arrow::Array>> arrays = {vectors(e, e.state), vectors(e, e.action)};
    for (arrow::ArrayBuilder* b : std::initializer_list<arrow::ArrayBuilder*>{&time, &frame, &episode, &index, &task}) {
      arrays.push_back(b->Finish().ValueOrDie());
    }
    std::vector<std::string> names = {"observation.state", "action", "timestamp", "frame_index",
                                      "episode_index",     "index",  "task_index"};
    if (e.paraphrase) {
      arrow::Int64Builder paraphrase;
      for (std::int64_t r = 0; r < e.rows; ++r) check(paraphrase.Append(e.paraphrase(r)));
      names.push_back("annotation.paraphrase");
      arrays.push_back(paraphrase.Finish().ValueOrDie());
    }
    std::vector<std::shared_ptr<arrow::Field>> fields;
    for (std::size_t c = 0; c < names.size(); ++c) fields.push_back(arrow::field(names[c], arrays[c]->type()));
    std::filesystem::create_directories(std::filesystem::path(parquet(i)).parent_path());
    auto out = arrow::io::FileOutputStream::Open(parquet(i)).ValueOrDie();
    const auto table = arrow::Table::Make(arrow::schema(fields), arrays);
    check(parquet::arrow::WriteTable(*table, arrow::default_memory_pool(), out, kRowGroup));
    check(out->Close());
  }

 private:
  static constexpr std::int64_t kRowGroup = 7;  // several row groups, so that chunked columns are read

  static void check(const arrow::Status& status) {
    if (!status.ok()) throw std::runtime_error(status.ToString());
  }

  static std::shared_ptr<arrow::Array> vectors(const TinyEpisode& e,
                                               const std::function<double(std::int64_t, std::int64_t)>& value) {
    std::shared_ptr<arrow::ArrayBuilder> values = std::make_shared<arrow::FloatBuilder>();
    if (e.float64) values = std::make_shared<arrow::DoubleBuilder>();
    const auto append = [&](double v) {
      return e.float64 ? static_cast<arrow::DoubleBuilder&>(*values).Append(v)
                       : static_cast<arrow::FloatBuilder&>(*values).Append(static_cast<float>(v));
    };
    arrow::ListBuilder lists(arrow::default_memory_pool(), values);
    arrow::FixedSizeListBuilder fixed(arrow::default_memory_pool(), values, kWidth);
    for (std::int64_t r = 0; r < e.rows; ++r) {
      check(e.fixed_size_lists ? fixed.Append() : lists.Append());
      for (std::int64_t d = 0; d < kWidth; ++d) check(append(value(r, d)));
    }
    return e.fixed_size_lists ? fixed.Finish().ValueOrDie() : lists.Finish().ValueOrDie();
  }

  void write_info() const {
    std::int64_t frames = 0;
    for (const TinyEpisode& e : episodes_) frames += e.rows;
    const std::string vector = R"({"dtype": "float32", "shape": [3], "names": null})";
    const std::string number = R"({"dtype": "int64", "shape": [1]})";
    const std::string camera = R"({"dtype": "video", "shape": [3, 12, 16], "names": ["channels", "height", "width"]})";
    write_lines(
        "meta/info.json",
        {R"({"codebase_version": "v2.1", "robot_type": "tiny", "total_episodes": )" + std::to_string(episodes_.size()) +
             R"(, "total_frames": )" + std::to_string(frames) + ",",
         R"("total_tasks": 2, "chunks_size": 1000, "fps": 10,)",
         R"("data_path": "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",)",
         R"("video_path": "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4",)",
         R"("features": {"observation.images.left": )" + camera + R"(, "observation.images.right": )" + camera,
         R"(, "observation.state": )" + vector + R"(, "action": )" + vector,
         R"(, "timestamp": {"dtype": "float32", "shape": [1]}, "frame_index": )" + number,
         episodes_[0].paraphrase ? R"(, "annotation.paraphrase": )" + number : std::string(),
         R"(, "episode_index": )" + number + R"(, "index": )" + number + R"(, "task_index": )" + number + "}}"});
  }

  std::vector<TinyEpisode> episodes_;
  ScratchFolder folder_;
  std::string root_ = folder_.path();
};

}  // namespace troupe::testing
