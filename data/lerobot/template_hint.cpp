#include "data/lerobot/template_hint.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

namespace troupe::data {

namespace {

constexpr std::size_t kEpisodesLookedAt = 50;
constexpr std::int64_t kUsualChunk = 1000;

constexpr std::string_view kDataV2[] = {"data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
                                        "data/episode_{episode_index:06d}.parquet",
                                        "data/chunk_{episode_chunk:03d}/episode_{episode_index:06d}.parquet"};
constexpr std::string_view kVideoV2[] = {
    "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4",
    "videos/{video_key}/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.mp4",
    "videos/{video_key}/episode_{episode_index:06d}.mp4", "videos/{video_key}_episode_{episode_index:06d}.mp4",
    "videos/chunk_{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4"};
constexpr std::string_view kDataV3[] = {"data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
                                        "data/chunk-{chunk_index:03d}/file_{file_index:03d}.parquet",
                                        "data/file-{file_index:03d}.parquet"};
constexpr std::string_view kVideoV3[] = {"videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
                                         "videos/chunk-{chunk_index:03d}/{video_key}/file-{file_index:03d}.mp4",
                                         "videos/{video_key}/chunk-{chunk_index:03d}/file_{file_index:03d}.mp4"};

/// Looks for the files of one template: of the rows, or of one camera.
class Search {
 public:
  Search(const LerobotDataset& dataset, std::string_view camera) : dataset_(dataset), camera_(camera) {}

  /// Is any file of the first episodes there?
  bool finds(std::string_view text, std::int64_t chunks_size) const {
    const std::size_t count = std::min(kEpisodesLookedAt, dataset_.episodes().size());
    for (std::size_t place = 0; place < count; ++place) {
      const auto fields = fields_of(place, chunks_size);
      const auto path = fields ? fill_path_template(text, *fields) : Result<std::string>(invalid_argument("no entry"));
      std::error_code code;
      if (path && std::filesystem::exists(std::filesystem::symlink_status(dataset_.root() + "/" + *path, code)))
        return true;
    }
    return false;
  }

 private:
  std::optional<PathFields> fields_of(std::size_t place, std::int64_t chunks_size) const {
    const EpisodeRecord& e = dataset_.episodes()[place];
    if (!dataset_.info().is_v3())
      return PathFields{.episode_chunk = e.index / chunks_size, .episode_index = e.index, .video_key = camera_};
    if (camera_.empty()) return PathFields::of_file(e.data_chunk, e.data_file);
    const VideoSpan* span = dataset_.video_span(place, camera_);
    if (span == nullptr) return std::nullopt;
    return PathFields::of_file(span->chunk, span->file, camera_);
  }

  const LerobotDataset& dataset_;
  std::string_view camera_;
};

std::optional<TemplateHint> hint_of(const LerobotDataset& dataset, const std::string& camera) {
  const LerobotInfo& info = dataset.info();
  const bool video = !camera.empty();
  const std::string& said = video ? info.video_path : info.data_path;
  const Search search(dataset, camera);
  if (search.finds(said, info.chunks_size)) return std::nullopt;
  const std::span<const std::string_view> known = info.is_v3()
                                                      ? video ? std::span<const std::string_view>(kVideoV3) : kDataV3
                                                  : video ? std::span<const std::string_view>(kVideoV2)
                                                          : kDataV2;
  for (const std::string_view text : known) {
    if (text != said && search.finds(text, info.chunks_size))
      return TemplateHint{video ? "video_path" : "data_path", said, std::string(text), camera};
  }
  if (!info.is_v3() && info.chunks_size != kUsualChunk && search.finds(said, kUsualChunk))
    return TemplateHint{"chunks_size", std::to_string(info.chunks_size), std::to_string(kUsualChunk), camera};
  return std::nullopt;
}

}  // namespace

DatasetProblem TemplateHint::problem(const std::string& root) const {
  const std::string path = root + "/meta/info.json";
  const std::string what = camera.empty() ? "table" : "video of " + camera;
  return {"D01", path,
          fmt::format("{}: {} is '{}', by which no {} is found; '{}' finds them: write that into the file", path, key,
                      said, what, wanted)};
}

bool TemplateHint::explains(const DatasetProblem& problem) const {
  if (problem.code != (camera.empty() ? "D03" : "D06") || problem.path.find(camera) == std::string::npos) return false;
  std::error_code code;
  return !std::filesystem::exists(std::filesystem::symlink_status(problem.path, code));
}

std::vector<TemplateHint> template_hints(const LerobotDataset& dataset) {
  std::vector<TemplateHint> out;
  if (auto hint = hint_of(dataset, "")) out.push_back(std::move(*hint));
  for (const LerobotFeature& f : dataset.info().features) {
    if (!f.is_video()) continue;
    if (auto hint = hint_of(dataset, f.name)) out.push_back(std::move(*hint));
  }
  return out;
}

}  // namespace troupe::data
