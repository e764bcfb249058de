#pragma once

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/io/file.h>
#include <arrow/table.h>
#include <arrow/util/key_value_metadata.h>
#include <parquet/arrow/writer.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/png_bytes.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/visible.h"

namespace troupe::testing {

/// One small dataset that is written as LeRobot v2.0, v2.1 or v3.0 with the same contents, for tests of everything that
/// reads datasets. Change the members, then write it with LerobotFolder. Needs Arrow::parquet.
///
/// Row r of episode e (its place, not its index) has observation.state[d] = 100 e + r / 4 + d, action[d] =
/// 100 e + (r + 1) / 4 - d, task e % 2, and the frame (e, r, camera). Columns: those of LeRobot's own writers.
struct LerobotSet {
  /// One camera's frames of one episode.
  struct Clip {
    std::size_t episode = 0, camera = 0;
    std::int64_t first_row = 0, rows = 0;
  };
  /// Writes a video file of these clips, one after the other.
  using WriteVideo = std::function<void(const std::string& path, const std::vector<Clip>& clips)>;

  std::string version = "v3.0";                           ///< v2.0, v2.1 or v3.0
  std::vector<std::int64_t> rows = {40, 25, 31, 40, 12};  ///< of every episode
  std::vector<std::int64_t> indices{};                    ///< episode_index of each; empty: 0, 1, ...
  std::vector<std::string> cameras = {"left", "right"};
  std::int64_t height = 12, width = 16, dims = 3;
  double fps = 10;
  bool images = false;  ///< cameras are columns of PNG images, every pixel (episode, row, camera)
  /// Changes a coded frame before it is written; an empty text is a null cell.
  std::function<void(std::size_t episode, std::int64_t row, std::size_t camera, std::string& png)> edit_image{};
  WriteVideo write_video{};  ///< empty: a line "frames height width", which TinyDataset::probe reads

  std::size_t data_episodes = 2, video_episodes = 3;  ///< v3: per file
  std::int64_t files_per_chunk = 1;                   ///< v3: chunks_size
  bool row_group_per_episode = true;                  ///< v3; otherwise one for a file, as after a conversion
  bool reversed = false;                              ///< v3: the episodes table lists the last episode first
  std::string task_column = "__index_level_0__";      ///< v3: as LeRobot 0.4 wrote it; "task" since 0.6

  /// v3: changes one episode's times before they are written.
  std::function<void(std::size_t episode, std::size_t camera, double& from, double& to)> shift{};

  double state(std::size_t e, std::int64_t r, std::int64_t d) const {
    return 100.0 * static_cast<double>(e) + 0.25 * static_cast<double>(r) + static_cast<double>(d);
  }
  double action(std::size_t e, std::int64_t r, std::int64_t d) const {
    return 100.0 * static_cast<double>(e) + 0.25 * static_cast<double>(r + 1) - static_cast<double>(d);
  }
  static std::int64_t task(std::size_t e) { return static_cast<std::int64_t>(e % 2); }
  std::int64_t index_of(std::size_t e) const { return indices.empty() ? static_cast<std::int64_t>(e) : indices[e]; }
  bool is_v3() const { return version == "v3.0"; }
  static std::string feature(const std::string& camera) { return "observation.images." + camera; }
};

/// A LerobotSet on disk, in a folder that is removed at the end.
class LerobotFolder {
 public:
  explicit LerobotFolder(LerobotSet set) : set_(std::move(set)) {
    for (std::size_t e = 0; e < set_.rows.size(); ++e) {
      from_.push_back(total_);
      total_ += set_.rows[e];
    }
    write_info();
    write_tasks();
    write_data();
    if (!set_.images) write_videos();
    set_.is_v3() ? write_episodes_table() : write_episode_lines();
  }

  const std::string& root() const { return root_; }
  const LerobotSet& set() const { return set_; }

  /// (chunk, file) of an episode's rows or frames.
  std::pair<std::int64_t, std::int64_t> place(std::size_t e, std::size_t episodes_per_file) const {
    const auto file = static_cast<std::int64_t>(e / episodes_per_file);
    return {file / set_.files_per_chunk, file % set_.files_per_chunk};
  }
  std::string data_file(std::size_t e) const {
    if (!set_.is_v3()) return root_ + "/data/chunk-000/episode_" + padded(set_.index_of(e), 6) + ".parquet";
    const auto [chunk, file] = place(e, set_.data_episodes);
    return root_ + "/data/chunk-" + padded(chunk, 3) + "/file-" + padded(file, 3) + ".parquet";
  }
  std::string video_file(std::size_t e, std::size_t camera) const {
    const std::string key = LerobotSet::feature(set_.cameras[camera]);
    if (!set_.is_v3()) return root_ + "/videos/chunk-000/" + key + "/episode_" + padded(set_.index_of(e), 6) + ".mp4";
    const auto [chunk, file] = place(e, set_.video_episodes);
    return root_ + "/videos/" + key + "/chunk-" + padded(chunk, 3) + "/file-" + padded(file, 3) + ".mp4";
  }
  void write_text(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + "/" + name).parent_path());
    std::ofstream(root_ + "/" + name, std::ios::binary) << text;
  }

  /// A table of whole columns.
  struct Columns {
    std::vector<std::shared_ptr<arrow::Field>> fields;
    std::vector<std::shared_ptr<arrow::Array>> arrays;
    void add(const std::string& name, arrow::ArrayBuilder& builder) {
      arrays.push_back(builder.Finish().ValueOrDie());
      fields.push_back(arrow::field(name, arrays.back()->type()));
    }
  };
  static void check(const arrow::Status& status) {
    if (!status.ok()) throw std::runtime_error(status.ToString());
  }
  static void write_table(const std::string& path, const Columns& columns, const std::vector<std::int64_t>& groups,
                          const std::shared_ptr<arrow::KeyValueMetadata>& pairs = nullptr) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    auto out = arrow::io::FileOutputStream::Open(path).ValueOrDie();
    const auto schema = arrow::schema(columns.fields, pairs);
    auto writer = parquet::arrow::FileWriter::Open(*schema, arrow::default_memory_pool(), out).ValueOrDie();
    const auto table = arrow::Table::Make(schema, columns.arrays);
    std::int64_t at = 0;
    for (const std::int64_t rows : groups) {
      check(writer->WriteTable(*table->Slice(at, rows), std::max<std::int64_t>(1, rows)));
      at += rows;
    }
    if (pairs != nullptr) check(writer->AddKeyValueMetadata(pairs));
    check(writer->Close());
    check(out->Close());
  }

 private:
  static std::string padded(std::int64_t value, std::size_t width) {
    const std::string text = std::to_string(value);
    return std::string(width - std::min(width, text.size()), '0') + text;
  }

  void write_info() const {
    const std::string number = R"({"dtype": "int64", "shape": [1], "names": null})";
    const std::string vector =
        R"({"dtype": "float32", "shape": [)" + std::to_string(set_.dims) + R"(], "names": null})";
    const std::string camera = std::string(R"({"dtype": ")") + (set_.images ? "image" : "video") +
                               R"(", "shape": [3, )" + std::to_string(set_.height) + ", " + std::to_string(set_.width) +
                               R"(], "names": ["channels", "height", "width"]})";
    std::string text = R"({"codebase_version": ")" + set_.version + R"(", "robot_type": "tiny", "total_episodes": )" +
                       std::to_string(set_.rows.size()) + R"(, "total_frames": )" + std::to_string(total_) +
                       R"(, "total_tasks": 2, "fps": )" + std::to_string(set_.fps) + R"(, "kept_key": {"a": 1}, )";
    if (set_.is_v3()) {
      text += R"("chunks_size": )" + std::to_string(set_.files_per_chunk) +
              R"(, "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",)"
              R"("video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",)"
              R"("data_files_size_in_mb": 100, "video_files_size_in_mb": 200, )";
    } else {
      text +=
          R"("chunks_size": 1000, "data_path": "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",)"
          R"("video_path": "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4", )";
    }
    text += R"("features": {)";
    for (const std::string& name : set_.cameras) text += "\"" + LerobotSet::feature(name) + "\": " + camera + ", ";
    text += R"("observation.state": )" + vector + R"(, "action": )" + vector +
            R"(, "timestamp": {"dtype": "float32", "shape": [1], "names": null})";
    for (const char* name : {"frame_index", "episode_index", "index", "task_index"})
      text += std::string(", \"") + name + "\": " + number;
    write_text("meta/info.json", text + "}}\n");
  }

  void write_tasks() const {
    if (!set_.is_v3()) {
      return write_text("meta/tasks.jsonl",
                        "{\"task_index\": 0, \"task\": \"Lift the Cup\"}\n"
                        "{\"task_index\": 1, \"task\": \"put it down\"}\n");
    }
    arrow::Int64Builder index;
    arrow::StringBuilder text;
    check(index.AppendValues({0, 1}));
    check(text.AppendValues({"Lift the Cup", "put it down"}));
    Columns columns;
    columns.add("task_index", index);
    columns.add(set_.task_column, text);
    write_table(root_ + "/meta/tasks.parquet", columns, {2},
                arrow::key_value_metadata({"pandas"}, {R"({"index_columns": [")" + set_.task_column + R"("]})"}));
  }

  std::shared_ptr<arrow::Array> vectors(const std::vector<std::size_t>& episodes, bool action) const {
    auto values = std::make_shared<arrow::FloatBuilder>();
    arrow::ListBuilder lists(arrow::default_memory_pool(), values);
    for (const std::size_t e : episodes) {
      for (std::int64_t r = 0; r < set_.rows[e]; ++r) {
        check(lists.Append());
        for (std::int64_t d = 0; d < set_.dims; ++d)
          check(values->Append(static_cast<float>(action ? set_.action(e, r, d) : set_.state(e, r, d))));
      }
    }
    return lists.Finish().ValueOrDie();
  }

  std::shared_ptr<arrow::Array> images(const std::vector<std::size_t>& episodes, std::size_t camera) const {
    const auto type = arrow::struct_({arrow::field("bytes", arrow::binary()), arrow::field("path", arrow::utf8())});
    auto bytes = std::make_shared<arrow::BinaryBuilder>();
    auto path = std::make_shared<arrow::StringBuilder>();
    arrow::StructBuilder cells(type, arrow::default_memory_pool(), {bytes, path});
    for (const std::size_t e : episodes) {
      for (std::int64_t r = 0; r < set_.rows[e]; ++r) {
        std::string rgb;
        for (std::int64_t p = 0; p < set_.height * set_.width; ++p)
          rgb += {static_cast<char>(e), static_cast<char>(r), static_cast<char>(camera)};
        check(cells.Append());
        std::string file = png_bytes(static_cast<std::uint32_t>(set_.width), static_cast<std::uint32_t>(set_.height),
                                     PngColor::rgb, 8, rgb);
        if (set_.edit_image) set_.edit_image(e, r, camera, file);
        check(file.empty() ? bytes->AppendNull() : bytes->Append(file));
        check(path->Append("frame.png"));
      }
    }
    return cells.Finish().ValueOrDie();
  }

  void write_data_file(const std::string& path, const std::vector<std::size_t>& episodes) const {
    arrow::Int64Builder frame, index, episode, task;
    arrow::FloatBuilder time;
    std::vector<std::int64_t> groups;
    for (const std::size_t e : episodes) {
      groups.push_back(set_.rows[e]);
      for (std::int64_t r = 0; r < set_.rows[e]; ++r) {
        check(frame.Append(r));
        check(index.Append(from_[e] + r));
        check(episode.Append(set_.index_of(e)));
        check(task.Append(LerobotSet::task(e)));
        check(time.Append(static_cast<float>(static_cast<double>(r) / set_.fps)));
      }
    }
    Columns columns;
    for (const bool action : {false, true}) {
      columns.arrays.push_back(vectors(episodes, action));
      columns.fields.push_back(arrow::field(action ? "action" : "observation.state", columns.arrays.back()->type()));
    }
    for (std::size_t c = 0; set_.images && c < set_.cameras.size(); ++c) {
      columns.arrays.push_back(images(episodes, c));
      columns.fields.push_back(arrow::field(LerobotSet::feature(set_.cameras[c]), columns.arrays.back()->type()));
    }
    columns.add("timestamp", time);
    columns.add("frame_index", frame);
    columns.add("episode_index", episode);
    columns.add("index", index);
    columns.add("task_index", task);
    if (!set_.row_group_per_episode) groups = {columns.arrays[0]->length()};
    write_table(path, columns, groups);
  }

  void write_data() const {
    std::map<std::string, std::vector<std::size_t>> files;
    for (std::size_t e = 0; e < set_.rows.size(); ++e) files[data_file(e)].push_back(e);
    for (const auto& [path, episodes] : files) write_data_file(path, episodes);
  }

  void write_videos() const {
    for (std::size_t c = 0; c < set_.cameras.size(); ++c) {
      std::map<std::string, std::vector<LerobotSet::Clip>> files;
      for (std::size_t e = 0; e < set_.rows.size(); ++e)
        files[video_file(e, c)].push_back({.episode = e, .camera = c, .first_row = 0, .rows = set_.rows[e]});
      for (const auto& [path, clips] : files) {
        std::filesystem::create_directories(std::filesystem::path(path).parent_path());
        if (set_.write_video) {
          set_.write_video(path, clips);
          continue;
        }
        std::int64_t frames = 0;
        for (const auto& clip : clips) frames += clip.rows;
        std::ofstream(path) << frames << " " << set_.height << " " << set_.width << "\n";
      }
    }
  }

  void write_episode_lines() const {
    std::string lines;
    for (std::size_t e = 0; e < set_.rows.size(); ++e) {
      lines += "{\"episode_index\": " + std::to_string(set_.index_of(e)) + ", \"tasks\": [\"" +
               (LerobotSet::task(e) == 0 ? "Lift the Cup" : "put it down") +
               "\"], \"length\": " + std::to_string(set_.rows[e]) + "}\n";
    }
    write_text("meta/episodes.jsonl", lines);
  }

  void write_episodes_table() const {
    arrow::Int64Builder index, length, chunk, file, from, to;
    arrow::ListBuilder tasks(arrow::default_memory_pool(), std::make_shared<arrow::StringBuilder>());
    arrow::ListBuilder stats(arrow::default_memory_pool(), std::make_shared<arrow::DoubleBuilder>());
    struct Camera {
      arrow::Int64Builder chunk, file;
      arrow::DoubleBuilder from, to;
    };
    std::vector<std::unique_ptr<Camera>> cameras;
    for (std::size_t c = 0; c < set_.cameras.size(); ++c) cameras.push_back(std::make_unique<Camera>());
    for (std::size_t i = 0; i < set_.rows.size(); ++i) {
      const std::size_t e = set_.reversed ? set_.rows.size() - 1 - i : i;
      const auto [data_chunk, data_file_index] = place(e, set_.data_episodes);
      check(index.Append(set_.index_of(e)));
      check(length.Append(set_.rows[e]));
      check(chunk.Append(data_chunk));
      check(file.Append(data_file_index));
      check(from.Append(from_[e]));
      check(to.Append(from_[e] + set_.rows[e]));
      check(tasks.Append());
      check(static_cast<arrow::StringBuilder*>(tasks.value_builder())
                ->Append(LerobotSet::task(e) == 0 ? "Lift the Cup" : "put it down"));
      check(stats.Append());
      for (std::int64_t d = 0; d < set_.dims; ++d)
        check(static_cast<arrow::DoubleBuilder*>(stats.value_builder())->Append(set_.state(e, 0, d)));
      for (std::size_t c = 0; c < cameras.size(); ++c) {
        const auto [video_chunk, video_file_index] = place(e, set_.video_episodes);
        std::int64_t before = 0;
        for (std::size_t other = e / set_.video_episodes * set_.video_episodes; other < e; ++other)
          before += set_.rows[other];
        double begin = static_cast<double>(before) / set_.fps;
        double end = static_cast<double>(before + set_.rows[e]) / set_.fps;
        if (set_.shift) set_.shift(e, c, begin, end);
        check(cameras[c]->chunk.Append(video_chunk));
        check(cameras[c]->file.Append(video_file_index));
        check(cameras[c]->from.Append(begin));
        check(cameras[c]->to.Append(end));
      }
    }
    Columns columns;
    columns.add("episode_index", index);
    columns.add("tasks", tasks);
    columns.add("length", length);
    columns.add("data/chunk_index", chunk);
    columns.add("data/file_index", file);
    columns.add("dataset_from_index", from);
    columns.add("dataset_to_index", to);
    for (std::size_t c = 0; !set_.images && c < cameras.size(); ++c) {
      const std::string prefix = "videos/" + LerobotSet::feature(set_.cameras[c]) + "/";
      columns.add(prefix + "chunk_index", cameras[c]->chunk);
      columns.add(prefix + "file_index", cameras[c]->file);
      columns.add(prefix + "from_timestamp", cameras[c]->from);
      columns.add(prefix + "to_timestamp", cameras[c]->to);
    }
    columns.add("stats/observation.state/min", stats);
    write_table(root_ + "/meta/episodes/chunk-000/file-000.parquet", columns,
                {static_cast<std::int64_t>(set_.rows.size())});
  }

  LerobotSet set_;
  ScratchFolder folder_;
  std::string root_ = folder_.path();
  std::vector<std::int64_t> from_;
  std::int64_t total_ = 0;
};

}  // namespace troupe::testing
