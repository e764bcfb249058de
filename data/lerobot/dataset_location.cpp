#include "data/lerobot/dataset_location.h"

#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "base/hugging_face.h"
#include "data/lerobot/file_checks.h"

namespace troupe::data {

namespace {

namespace fs = std::filesystem;

bool is_dataset(const std::string& folder) {
  std::error_code code;
  return fs::exists(folder + "/meta/info.json", code);
}

}  // namespace

Result<std::string> find_dataset(const std::string& path_or_repo_id) {
  std::string folder = path_or_repo_id;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  if (is_dataset(folder)) return folder;
  if (!is_repo_id(folder)) {
    TROUPE_ASSIGN([[maybe_unused]] const auto size, require_regular_file(folder + "/meta/info.json"));
    return Error{Errc::not_found, fmt::format("{}/meta/info.json appeared while it was looked for", folder)};
  }

  const auto [hub, lerobot] = hub_folders();
  std::vector<std::string> places = {folder};
  if (!lerobot.empty()) {
    places.push_back(lerobot + "/" + folder);
    if (is_dataset(places.back())) return places.back();
  }
  const std::size_t slash = folder.find('/');
  const std::string repository = "/datasets--" + folder.substr(0, slash) + "--" + folder.substr(slash + 1);
  for (const std::string& hubs : {lerobot.empty() ? lerobot : lerobot + "/hub", hub}) {
    if (hubs.empty()) continue;
    const std::string snapshot = find_snapshot(hubs + repository, is_dataset);
    if (!snapshot.empty()) return snapshot;
    places.push_back(hubs + repository + "/snapshots/*");
  }
  std::string text =
      fmt::format("dataset '{}' was not found (nothing is downloaded); looked for meta/info.json in", folder);
  for (const std::string& place : places) text += "\n  " + place;
  text += fmt::format("\nto download it from the Hugging Face Hub:\n  hf download {} --repo-type dataset", folder);
  return Error{Errc::not_found, text};
}

}  // namespace troupe::data
