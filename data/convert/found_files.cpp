#include "data/convert/found_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

namespace troupe::data {

namespace {

namespace fs = std::filesystem;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The last number in a name: 12 of "episode_000012".
std::optional<std::int64_t> last_number(const std::string& name) {
  std::size_t end = name.size();
  while (end > 0 && !is_digit(name[end - 1])) --end;
  std::size_t begin = end;
  while (begin > 0 && is_digit(name[begin - 1])) --begin;
  std::int64_t number = 0;
  const auto read = std::from_chars(name.data() + begin, name.data() + end, number);
  return begin < end && read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

std::optional<FileNumber> number_of(const fs::path& relative, bool v3) {
  const auto file = last_number(relative.stem().string());
  if (!file) return std::nullopt;
  std::int64_t chunk = 0;
  for (const fs::path& part : relative.parent_path()) {
    const std::string name = part.string();
    if (v3 && name.starts_with("chunk")) chunk = last_number(name).value_or(0);
  }
  return FileNumber{chunk, *file};
}

/// The camera whose frames a path holds; empty: that cannot be told.
std::string camera_of(const fs::path& relative, const std::vector<std::string>& cameras) {
  const fs::path folders = relative.parent_path();
  const auto is_above = [&](const std::string& name) {
    return std::find(folders.begin(), folders.end(), fs::path(name)) != folders.end();
  };
  for (const std::string& camera : cameras) {
    if (is_above(camera)) return camera;
  }
  std::string found;
  for (const std::string& camera : cameras) {
    if (!is_above(camera.substr(camera.rfind('.') + 1))) continue;
    if (!found.empty()) return {};
    found = camera;
  }
  return found.empty() && cameras.size() == 1 ? cameras[0] : found;
}

/// Where info.json says that file is; empty: it does not say. `camera` empty: a table.
std::string stated_path(const LerobotInfo& info, const FileNumber& number, const std::string& camera) {
  const auto fields = info.is_v3() ? PathFields::of_file(number.first, number.second, camera)
                                   : PathFields::of_episode(info, number.second, camera);
  const auto path = fill_path_template(camera.empty() ? info.data_path : info.video_path, fields);
  return path ? *path : std::string();
}

bool is_video(const fs::path& path) {
  const std::string ending = path.extension().string();
  return ending == ".mp4" || ending == ".mkv" || ending == ".mov" || ending == ".webm";
}

/// Files below `root`, ascending, relative to it.
std::vector<fs::path> list(const std::string& root) {
  std::vector<fs::path> out;
  std::error_code failed, dangling;
  for (fs::recursive_directory_iterator it(root, failed), end; !failed && it != end; it.increment(failed)) {
    const fs::path relative = it->path().lexically_relative(root);
    const bool hidden = it->path().filename().string().starts_with('.');
    if (it->is_directory(dangling) && (hidden || relative == "meta")) it.disable_recursion_pending();
    if (!hidden && it->is_regular_file(dangling)) out.push_back(relative);
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

FoundFiles find_files(const std::string& root, const LerobotInfo& info) {
  std::vector<std::string> cameras;
  for (const LerobotFeature& f : info.features) {
    if (f.is_video()) cameras.push_back(f.name);
  }
  FoundFiles out;
  for (const fs::path& file : list(root)) {
    const bool table = file.extension() == ".parquet";
    if (!table && !is_video(file)) continue;
    std::string path = root + "/" + file.string();
    const std::string camera = table ? "" : camera_of(file, cameras);
    const auto number = number_of(file, info.is_v3());
    if (!number || (!table && camera.empty())) {
      out.notes.push_back(fmt::format("{} is not used: its name does not say which {} it is", path,
                                      number ? "camera" : "episode or file"));
      continue;
    }
    const auto [it, added] = (table ? out.tables : out.videos[camera]).emplace(*number, path);
    if (!added && path == root + "/" + stated_path(info, *number, camera)) it->second.swap(path);
    if (!added) out.notes.push_back(fmt::format("{} is not used: {} has its number", path, it->second));
  }
  return out;
}

}  // namespace troupe::data
