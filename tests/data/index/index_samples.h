#pragma once

#include <string>

#include "data/index/file_table.h"
#include "data/index/sample_table.h"
#include "tests/support/visible.h"

namespace troupe::testing {

/// A samples index of two usable episodes, one that was left out, two views, three label runs and two tasks.
inline SampleContents sample_contents() {
  SampleContents c;
  c.summary.recipe = 0x1234567890ABCDEF;
  c.summary.check_key = 42;
  c.summary.num_views = 2;
  c.summary.image_columns = {"", "observation.images.right"};
  c.summary.anchor_stride = 2;
  c.summary.listed_episodes = 3;
  c.summary.skipped_episodes = 1;
  c.summary.problems = {{7, {"D06", "/d/videos/c.mp4", "/d/videos/c.mp4 has zero bytes"}}};
  c.summary.warnings = {{-1, {"D02", "/d/meta/info.json", "counts"}}, {9, {"D05", "/d/data/b.parquet", "steps"}}};
  const FeatureStatistics s{
      .min = {-1, 0}, .max = {1, 2}, .mean = {0, 1}, .std = {0.5, 0.25}, .q01 = {-0.9, 0.1}, .q99 = {0.9, 1.9}};
  c.summary.statistics = {.state = {s}, .action = {s, s}};
  c.summary.metadata_json = "{\"gr1\": {}}";
  c.summary.fingerprint = std::string(32, 'a');
  c.metadata = {{"meta/episodes.jsonl", 120, std::string(32, 'b')}, {"meta/info.json", 900, std::string(32, 'c')}};
  c.paths = {"data/a.parquet", "data/b.parquet", "data/c.parquet", "videos/a.mp4", "videos/b.mp4", "videos/c.mp4"};
  for (std::int64_t i = 0; i < 6; ++i)
    c.states.push_back({.size = 100 + i, .content = static_cast<std::uint64_t>(1000 * i)});
  c.states[5] = {};
  c.watched = {2, 5};
  IndexedEpisode first{.episode = {}, .data_path = 0, .first_row = 0, .images = {{3, 0}, {0, 0}}};
  first.episode.index = 3;
  first.episode.rows = first.episode.length = 20;
  first.episode.view_height = 12;
  first.episode.view_width = 16;
  first.episode.labels = {{0, 5}, {9, 6}};
  first.episode.files_hash = 99;
  IndexedEpisode second = first;
  second.episode.index = 9;
  second.episode.place = 2;
  second.episode.length = 19;
  second.episode.labels = {{0, 6}};
  second.data_path = 1;
  second.first_row = 20;
  second.images = {{4, 20}, {1, 20}};
  c.episodes = {first, second};
  c.train = SampleIndex(2);
  const AnchorRun runs[] = {{0, 4}, {12, 2}};
  c.train.add_runs(0, runs);
  c.eval = SampleIndex(2);
  const AnchorRun held[] = {{4, 8}};
  c.eval.add_runs(1, held);
  c.summary.train_size = c.train.size();
  c.summary.eval_size = c.eval.size();
  c.tasks = {{5, "lift the cup"}, {6, "put it down"}};
  return c;
}

/// Entries of a files index without packets: two Parquet files and a video.
inline void add_plain_files(FileTableWriter& out) {
  out.add("data/a.parquet", {.state = {.size = 700, .content = 3}, .video = std::nullopt});
  out.add("data/b.parquet", {.state = {.size = 800, .content = 4}, .video = std::nullopt});
  out.add(
      "videos/plain.mp4",
      {.state = {.size = 9000, .content = 5},
       .video = VideoInfo{.width = 16, .height = 12, .frames = 20, .fps = 10, .codec = "h264", .pix_fmt = "yuv420p"}});
}

/// Sections of an index file, to be changed and sealed again.
inline std::vector<std::string> sections_of(const IndexFile& file) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < file.num_sections(); ++i) {
    const auto raw = file.section(i);
    out.emplace_back(reinterpret_cast<const char*>(raw.data()), raw.size());
  }
  return out;
}

/// Looks at everything that a samples index says; the return value keeps the reads from being optimised away.
inline std::uint64_t touch(const SampleTable& t) {
  std::uint64_t sum = t.summary().train_size + t.metadata().size();
  for (std::size_t i = 0; i < t.num_paths(); ++i) {
    sum += t.path(i).size() + static_cast<std::uint64_t>(t.state(i).size);
  }
  for (std::size_t e = 0; e < t.num_episodes(); ++e) {
    const Episode episode = t.episode(e);
    sum += t.rows(e).path.size() + t.files_of(e).size() + t.find_episode(episode.index).value_or(0);
    for (std::int64_t v = 0; v < t.summary().num_views; ++v)
      sum += t.images(e, static_cast<std::size_t>(v)).path.size();
    for (const LabelRun& run : episode.labels) sum += t.task(run.label).value_or("").size();
  }
  for (const SampleIndex& index : {t.train(), t.eval()}) {
    const std::uint64_t step = index.size() / 100 + 1;
    for (std::uint64_t i = 0; i < index.size(); i += step) sum += static_cast<std::uint64_t>(index.at(i).anchor);
  }
  return sum;
}

/// The same of a files index.
inline std::uint64_t touch(const FileTable& t) {
  std::uint64_t sum = t.size();
  for (std::size_t i = 0; i < t.size(); ++i) {
    sum += t.path(i).size() + t.find(t.path(i)).value_or(0);
    if (const auto entry = t.entry(i)) sum += static_cast<std::uint64_t>(entry->state.size);
    if (const auto packets = t.packets(i); packets && *packets) {
      for (const VideoSample& s : (*packets)->samples) sum += static_cast<std::uint64_t>(s.offset);
      sum += (*packets)->decode_of_rank.size();
    }
  }
  return sum;
}

}  // namespace troupe::testing
