#include "data/health/metadata_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

namespace troupe::data {

namespace {

namespace fs = std::filesystem;

std::string info_path(const LerobotDataset& dataset) { return dataset.root() + "/meta/info.json"; }

/// Video files of a camera that exist; `named`: whether the metadata say where its frames are.
struct Found {
  std::int64_t files = 0;
  bool named = false;
};

Found files_of(const LerobotDataset& dataset, const std::string& camera) {
  Found out;
  std::set<std::string> seen;
  for (std::size_t place = 0; place < dataset.episodes().size(); ++place) {
    const auto images = dataset.images(place, camera);
    if (!images) continue;
    out.named = true;
    if (!seen.insert(images->path).second) continue;
    std::error_code code;
    if (fs::exists(fs::symlink_status(images->path, code))) ++out.files;
  }
  return out;
}

void warn(std::vector<HealthFinding>& findings, const std::string& path, std::string text) {
  findings.push_back({"D02", FindingLevel::warning, path, std::move(text)});
}

}  // namespace

std::vector<HealthFinding> find_nothing_listed(const LerobotDataset& dataset) {
  const auto problem = [](const std::string& path, std::string text) {
    return std::vector<HealthFinding>{{"D01", FindingLevel::problem, path, std::move(text)}};
  };
  const std::string info = info_path(dataset);
  if (dataset.info().features.empty())
    return problem(info, fmt::format("{}: features is empty: the dataset has neither columns nor cameras", info));
  if (!dataset.episodes().empty()) return {};
  if (!dataset.info().discarded_episodes.empty())
    return problem(info, fmt::format("{}: discarded_episode_indices leaves no episode", info));
  const std::string list = dataset.root() + (dataset.info().is_v3() ? "/meta/episodes" : "/meta/episodes.jsonl");
  return problem(list, fmt::format("{} lists no episode", list));
}

void check_modality_names(const LerobotDataset& dataset, const Modality& modality,
                          std::vector<HealthFinding>& findings) {
  const std::string path = dataset.root() + "/meta/modality.json";
  for (const NamedColumn& view : modality.video) {
    const LerobotFeature* feature = dataset.info().find(view.column);
    if (feature != nullptr && feature->is_camera()) continue;
    warn(findings, path,
         fmt::format("{}: video.{} is '{}', which is no camera of info.json; it has {}", path, view.name, view.column,
                     fmt::join(dataset.cameras(), ", ")));
  }
  for (const NamedColumn& note : modality.annotation) {
    if (dataset.info().find(note.column) != nullptr) continue;
    warn(findings, path,
         fmt::format("{}: annotation.{} is '{}', a column that info.json does not list", path, note.name, note.column));
  }
}

void check_default_keys(const LerobotDataset& dataset, const Modality& modality, std::vector<HealthFinding>& findings) {
  const LerobotInfo& info = dataset.info();
  const auto problem = [&](const std::string& path, std::string text) {
    findings.push_back({"D01", FindingLevel::problem, path, std::move(text)});
  };
  const auto check_column = [&](std::initializer_list<const char*> names, const std::vector<VectorKey>& keys) {
    for (const char* name : names) {
      const LerobotFeature* feature = info.find(name);
      if (feature == nullptr || feature->is_numbers() || !keys.empty()) continue;
      problem(
          info_path(dataset),
          fmt::format("{} says that '{}' has dtype {} and shape [{}]; a state or an action is one list of numbers a "
                      "row",
                      info_path(dataset), name, feature->dtype, fmt::join(feature->shape, ", ")));
    }
  };
  check_column({"observation.state", "state"}, modality.state);
  check_column({"action", "actions"}, modality.action);
  std::vector<std::string> cameras = dataset.cameras();
  std::erase_if(cameras, [&](const std::string& name) { return info.find(name)->is_depth; });
  if (!modality.video.empty() || cameras.empty()) return;
  const std::string path = dataset.root() + "/meta/modality.json";
  problem(path, fmt::format("{}: video names no camera; info.json has {}: a job needs data.embodiment.views, or names "
                            "in that file",
                            path, fmt::join(cameras, ", ")));
}

void check_step_filter(const LerobotDataset& dataset, std::vector<HealthFinding>& findings) {
  if (const auto rows = read_step_filter(dataset.root()); !rows)
    findings.push_back(
        {"D01", FindingLevel::problem, dataset.root() + "/meta/step_filter.jsonl", rows.error().message()});
}

void note_names(const LerobotDataset& dataset, std::vector<HealthFinding>& findings) {
  for (const LerobotFeature& f : dataset.info().features) {
    // one name of many numbers is what LeRobot calls the axis
    if (f.stated_names <= 1 || f.stated_names == f.width()) continue;
    findings.push_back({"D02", FindingLevel::note, info_path(dataset),
                        fmt::format("{}: '{}' has {} names for {} numbers; they are not used", info_path(dataset),
                                    f.name, f.stated_names, f.width())});
  }
}

CameraFiles check_camera_files(const LerobotDataset& dataset, const Modality& modality, bool modality_file,
                               std::vector<HealthFinding>& findings) {
  const LerobotInfo& info = dataset.info();
  CameraFiles out;
  std::vector<std::pair<std::string, Found>> absent;
  std::int64_t files = 0;
  for (const LerobotFeature& f : info.features) {
    if (!f.is_video()) continue;
    const Found found = files_of(dataset, f.name);
    files += found.files;
    if (found.files == 0) absent.emplace_back(f.name, found);
  }
  const bool whole = !info.is_v3() && info.discarded_episodes.empty();
  const auto in_modality = [&](const std::string& name) {
    return modality_file && std::any_of(modality.video.begin(), modality.video.end(),
                                        [&](const NamedColumn& view) { return view.column == name; });
  };
  for (const auto& [name, found] : absent) {
    const bool counted = whole && info.total_videos > files;
    if ((info.is_v3() && found.named) || counted || in_modality(name) || files == 0) {
      out.gone.push_back(name);
      continue;
    }
    out.never_recorded.push_back(name);
    warn(findings, info_path(dataset),
         fmt::format("{} lists the camera '{}', of which no episode has a file; take the feature out",
                     info_path(dataset), name));
  }
  const auto compare = [&](const char* key, std::int64_t stated, std::int64_t is) {
    if (!whole || stated < 0 || stated == is) return;
    warn(findings, info_path(dataset),
         fmt::format("{} says {} {}; {} were found", info_path(dataset), key, stated, is));
  };
  compare("total_videos", info.total_videos, files);
  const auto episodes = static_cast<std::int64_t>(dataset.episodes().size());
  compare("total_chunks", info.total_chunks, (episodes + info.chunks_size - 1) / info.chunks_size);
  return out;
}

}  // namespace troupe::data
