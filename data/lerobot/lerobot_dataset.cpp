#include "data/lerobot/lerobot_dataset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "data/lerobot/dataset_location.h"
#include "data/lerobot/episodes_table.h"
#include "data/lerobot/feature_check.h"

namespace troupe::data {

void LerobotDataset::check_counts(std::size_t discarded) {
  const auto compare = [&](const char* key, std::int64_t stated, std::int64_t found) {
    if (stated < 0 || stated == found) return;
    findings_.push_back({"D02", root_ + "/meta/info.json",
                         fmt::format("{}/meta/info.json says {} {}; {} were found", root_, key, stated, found)});
  };
  std::int64_t rows = 0;
  for (const EpisodeRecord& e : episodes_) rows += e.length;
  compare("total_episodes", info_.total_episodes, static_cast<std::int64_t>(episodes_.size() + discarded));
  if (discarded == 0) compare("total_frames", info_.total_frames, rows);
  compare("total_tasks", info_.total_tasks, static_cast<std::int64_t>(tasks_.size()));
}

void LerobotDataset::note_foreign_files() {
  std::vector<std::string> foreign;
  (void)episode_table_files(root_, &foreign);
  for (const std::string& path : foreign) {
    findings_.push_back(
        {"D02", path,
         fmt::format("{} is no chunk-NNN/file-NNN.parquet of meta/episodes and is ignored; delete it", path)});
  }
}

Result<LerobotDataset> LerobotDataset::open(const std::string& path_or_repo_id, const VideoProbe& probe,
                                            DiscardedEpisodes discarded_ones) {
  LerobotDataset set;
  TROUPE_ASSIGN(set.root_, find_dataset(path_or_repo_id));
  TROUPE_ASSIGN(set.info_, read_lerobot_info(set.root_));
  const CountFrames count = [&](const std::string& path) -> std::int64_t {
    const auto video = probe ? probe(path) : probe_video(path);
    return video ? video->frames : -1;
  };
  TROUPE_ASSIGN(set.episodes_, read_episodes(set.root_, set.info_, set.findings_, count));
  TROUPE_ASSIGN(set.tasks_, read_tasks(set.root_, set.info_));
  std::vector<std::int64_t> discarded;
  if (discarded_ones == DiscardedEpisodes::left_out) discarded = set.info_.discarded_episodes;
  std::sort(discarded.begin(), discarded.end());
  const std::size_t left_out = std::erase_if(set.episodes_, [&](const EpisodeRecord& e) {
    return std::binary_search(discarded.begin(), discarded.end(), e.index);
  });
  set.check_counts(left_out);
  if (set.info_.is_v3()) set.note_foreign_files();
  if (!set.episodes_.empty()) check_features(set, set.findings_);
  return set;
}

std::optional<std::size_t> LerobotDataset::find(std::int64_t episode) const {
  const auto it = std::lower_bound(episodes_.begin(), episodes_.end(), episode,
                                   [](const EpisodeRecord& e, std::int64_t index) { return e.index < index; });
  if (it == episodes_.end() || it->index != episode) return std::nullopt;
  return static_cast<std::size_t>(it - episodes_.begin());
}

Result<RowSource> LerobotDataset::rows(std::size_t place) const {
  const EpisodeRecord& e = episodes_[place];
  const PathFields fields =
      info_.is_v3() ? PathFields::of_file(e.data_chunk, e.data_file) : PathFields::of_episode(info_, e.index);
  const auto path = fill_path_template(info_.data_path, fields);
  if (!path) return path.error().with(root_ + "/meta/info.json: data_path");
  return RowSource{root_ + "/" + *path, e.first_row};
}

const VideoSpan* LerobotDataset::video_span(std::size_t place, std::string_view feature) const {
  for (const VideoSpan& v : episodes_[place].videos) {
    if (info_.features[static_cast<std::size_t>(v.feature)].name == feature) return &v;
  }
  return nullptr;
}

Result<ImageSource> LerobotDataset::images(std::size_t place, std::string_view feature) const {
  const LerobotFeature* camera = info_.find(feature);
  if (camera == nullptr || !camera->is_camera()) {
    return invalid_argument(
        fmt::format("{}: '{}' is no camera; the dataset has {}", root_, feature, fmt::join(cameras(), ", ")));
  }
  if (camera->is_image()) {
    TROUPE_ASSIGN(RowSource source, rows(place));
    return ImageSource{std::move(source.path), source.first_row, camera->name};
  }
  const VideoSpan* span = video_span(place, feature);
  if (span == nullptr) {
    return invalid_argument(
        fmt::format("{}/meta/episodes has no columns for the camera '{}' of info.json", root_, feature));
  }
  if (info_.video_path.empty()) {
    return invalid_argument(
        fmt::format("{}/meta/info.json has no video_path, the template of camera '{}'", root_, feature));
  }
  const PathFields fields = info_.is_v3() ? PathFields::of_file(span->chunk, span->file, feature)
                                          : PathFields::of_episode(info_, episodes_[place].index, feature);
  const auto path = fill_path_template(info_.video_path, fields);
  if (!path) return path.error().with(root_ + "/meta/info.json: video_path");
  return ImageSource{root_ + "/" + *path, span->first_frame, {}};
}

std::vector<std::string> LerobotDataset::cameras() const {
  std::vector<std::string> out;
  for (const LerobotFeature& f : info_.features) {
    if (f.is_camera()) out.push_back(f.name);
  }
  return out;
}

std::vector<std::string> LerobotDataset::metadata_files() const {
  std::vector<std::string> out;
  for (const char* name : {"info.json", "episodes.jsonl", "tasks.jsonl", "tasks.parquet", "modality.json", "stats.json",
                           "relative_stats_dreamzero.json", "step_filter.jsonl"}) {
    std::error_code code;
    if (std::filesystem::exists(root_ + "/meta/" + name, code)) out.push_back(std::string("meta/") + name);
  }
  if (info_.is_v3()) {
    for (const std::string& path : episode_table_files(root_)) out.push_back(path.substr(root_.size() + 1));
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace troupe::data
