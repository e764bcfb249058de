#include "data/convert/doubtful_cameras.h"

#include <arrow/type.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

namespace troupe::data {

namespace {

namespace fs = std::filesystem;

/// The first video below a folder by its path; empty: there is none.
std::string first_video(const fs::path& folder) {
  std::string first;
  std::error_code failed;
  for (fs::recursive_directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
    if (it->path().extension() != ".mp4" || it->path().filename().string().starts_with('.')) continue;
    if (first.empty() || it->path().string() < first) first = it->path().string();
  }
  return first;
}

/// Folders that stand where the template of the videos has the camera's name and that are no camera of info.json, with
/// the first video of each. Folders of chunks are none: another version may have left them.
std::map<std::string, std::string> unlisted_cameras(const std::string& root, const LerobotInfo& info) {
  std::string pattern = info.video_path;
  if (pattern.empty()) pattern = info.is_v3() ? "videos/{video_key}/x" : "videos/{episode_chunk}/{video_key}/x";
  std::vector<fs::path> level = {root};
  std::map<std::string, std::string> out;
  for (const fs::path& part : fs::path(pattern)) {
    std::vector<fs::path> below;
    std::error_code failed;
    for (const fs::path& folder : level) {
      if (part.string().find('{') == std::string::npos) {
        below.push_back(folder / part);
        continue;
      }
      for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) {
        std::error_code dangling;
        if (it->is_directory(dangling)) below.push_back(it->path());
      }
    }
    level = std::move(below);
    if (part != "{video_key}") continue;
    std::sort(level.begin(), level.end());
    for (const fs::path& folder : level) {
      const std::string name = folder.filename().string();
      if (name.starts_with('.') || name.starts_with("chunk-") || out.count(name) != 0) continue;
      if (const LerobotFeature* feature = info.find(name); feature != nullptr && feature->is_camera()) continue;
      if (std::string video = first_video(folder); !video.empty()) out[name] = std::move(video);
    }
    return out;
  }
  return out;  // one folder holds all cameras, or a part of its name says which
}

}  // namespace

std::string no_file_of(const std::string& camera, const std::string& where) {
  return fmt::format("D06 camera '{}' has no file ({})", camera, where);
}

void add_absent_images(const LerobotInfo& info, const std::string& table, const arrow::Schema& columns,
                       std::vector<DoubtfulCamera>& out) {
  for (const LerobotFeature& f : info.features) {
    if (!f.is_image() || columns.GetFieldIndex(f.name) >= 0) continue;
    out.push_back({f.name, fmt::format("D06 camera '{}' is of dtype image, and {} has no such column", f.name, table)});
  }
}

void add_unlisted_cameras(const std::string& root, const LerobotInfo& info, std::vector<DoubtfulCamera>& out) {
  for (const auto& [name, video] : unlisted_cameras(root, info)) {
    const LerobotFeature* feature = info.find(name);
    out.push_back({name, fmt::format("D02 {} is a video of '{}', which info.json {}", video, name,
                                     feature == nullptr ? "does not list"
                                                        : fmt::format("calls a column of dtype {}", feature->dtype))});
  }
}

}  // namespace troupe::data
