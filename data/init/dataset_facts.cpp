#include "data/init/dataset_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "data/lerobot/lerobot_dataset.h"
#include "data/video/video_file.h"

namespace troupe::data {

namespace {

bool has_bytes(const std::string& path) {
  std::error_code code;
  return std::filesystem::is_regular_file(path, code) && std::filesystem::file_size(path, code) > 0 && !code;
}

/// Counts the episodes that have a file and looks at the first that can be opened.
void look_at_videos(const LerobotDataset& dataset, CameraFacts& camera) {
  std::string seen, why;
  bool there = false;
  for (std::size_t place = 0; place < dataset.episodes().size(); ++place) {
    const auto source = dataset.images(place, camera.feature);
    if (!source) {
      if (why.empty()) why = source.error().message();
      continue;
    }
    // neighbours share a file in v3.0
    if (source->path != seen) {
      seen = source->path;
      there = has_bytes(seen);
      if (there && camera.height == 0) {
        const auto video = probe_video(seen);
        if (video && video->pix_fmt != "yuv420p")
          camera.trouble = fmt::format("its videos are {}, and training reads yuv420p", video->pix_fmt);
        if (video) {
          camera.height = video->height;
          camera.width = video->width;
        } else if (why.empty()) {
          why = video.error().message();
        }
      }
    }
    if (there) ++camera.episodes;
  }
  if (camera.episodes == 0)
    camera.trouble = why.empty() ? "no episode has its file" : why;
  else if (camera.height == 0)
    camera.trouble = why;
}

CameraFacts look_at(const LerobotDataset& dataset, const NamedColumn& view) {
  CameraFacts camera{.name = view.name, .feature = view.column};
  const LerobotFeature* feature = dataset.info().find(view.column);
  if (feature == nullptr || !feature->is_camera()) {
    camera.trouble = fmt::format("modality.json names it, and info.json has no camera '{}'", view.column);
  } else if (feature->is_depth) {
    camera.trouble = "it shows distances, not colours";
  } else if (feature->is_video()) {
    look_at_videos(dataset, camera);
  } else {
    camera.episodes = static_cast<std::int64_t>(dataset.episodes().size());
    if (feature->shape.size() == 3) {
      camera.height = feature->shape[0];
      camera.width = feature->shape[1];
    }
    if (camera.height < 2 || camera.width < 2) camera.trouble = "info.json does not say how large its images are";
  }
  return camera;
}

}  // namespace

Result<DatasetFacts> read_dataset_facts(const std::string& path_or_repo_id) {
  TROUPE_ASSIGN(const LerobotDataset dataset, LerobotDataset::open(path_or_repo_id));
  DatasetFacts facts;
  std::error_code code;
  facts.root = std::filesystem::canonical(dataset.root(), code).string();
  if (code) facts.root = dataset.root();
  facts.info = dataset.info();
  facts.episodes = static_cast<std::int64_t>(dataset.episodes().size());
  TROUPE_ASSIGN(facts.modality, read_modality(dataset.root(), dataset.info()));
  facts.has_modality = std::filesystem::exists(dataset.root() + "/meta/modality.json", code);
  for (const NamedColumn& view : facts.modality.video) facts.cameras.push_back(look_at(dataset, view));
  for (const std::string& feature : dataset.cameras()) {
    const bool known = std::any_of(facts.cameras.begin(), facts.cameras.end(),
                                   [&](const CameraFacts& c) { return c.feature == feature; });
    if (known) continue;
    CameraFacts camera = look_at(dataset, {feature, feature});
    // modality.json is the robot's own word for what to look at
    if (camera.trouble.empty() && !facts.modality.video.empty()) camera.trouble = "modality.json does not name it";
    facts.cameras.push_back(std::move(camera));
  }
  return facts;
}

}  // namespace troupe::data
