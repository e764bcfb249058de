#include "data/lerobot/dataset_location.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include "data/lerobot/file_checks.h"

namespace troupe::data {

namespace {

namespace fs = std::filesystem;

bool is_dataset(const std::string& folder) {
  std::error_code code;
  return fs::exists(folder + "/meta/info.json", code);
}

/// owner/name, as Hugging Face allows.
bool is_repo_id(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == text.size() || text.front() == '.') return false;
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.' || c == '/';
  };
  return std::all_of(text.begin(), text.end(), allowed) && text.find('/', slash + 1) == std::string_view::npos &&
         text[slash + 1] != '.';
}

/// A folder that a variable names, else one below `otherwise`; empty when neither is known.
std::string folder_of(const char* variable, const std::string& otherwise) {
  const char* set = std::getenv(variable);
  if (set == nullptr || *set == '\0') return otherwise;
  std::string folder = set;
  const char* home = std::getenv("HOME");
  if (folder.rfind("~/", 0) == 0 && home != nullptr) folder = home + folder.substr(1);
  return folder;
}

std::string below(const std::string& folder, const char* name) { return folder.empty() ? folder : folder + name; }

/// The snapshot of a repository in a Hugging Face cache; empty when it has none with a dataset in it.
std::string snapshot_in(const std::string& repository) {
  std::ifstream ref(repository + "/refs/main");
  if (std::string commit; std::getline(ref, commit)) {
    while (!commit.empty() && static_cast<unsigned char>(commit.back()) <= ' ') commit.pop_back();
    std::string folder = repository + "/snapshots/" + commit;
    if (!commit.empty() && commit.find('/') == commit.npos && is_dataset(folder)) return folder;
  }
  std::string newest;
  fs::file_time_type newest_time{};
  std::error_code code;
  for (fs::directory_iterator it(repository + "/snapshots", code), end; !code && it != end; it.increment(code)) {
    const std::string folder = it->path().string();
    std::error_code unreadable;
    const auto time = fs::last_write_time(it->path(), unreadable);
    if (unreadable || !is_dataset(folder)) continue;
    if (newest.empty() || time > newest_time || (time == newest_time && folder > newest)) {
      newest = folder;
      newest_time = time;
    }
  }
  return newest;
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

  const std::string home = folder_of("HOME", "");
  const std::string cache = folder_of("XDG_CACHE_HOME", below(home, "/.cache"));
  const std::string hugging_face = folder_of("HF_HOME", below(cache, "/huggingface"));
  const std::string lerobot = folder_of("HF_LEROBOT_HOME", below(hugging_face, "/lerobot"));
  const std::string hub = folder_of("HF_HUB_CACHE", folder_of("HUGGINGFACE_HUB_CACHE", below(hugging_face, "/hub")));

  std::vector<std::string> places = {folder};
  if (!lerobot.empty()) {
    places.push_back(lerobot + "/" + folder);
    if (is_dataset(places.back())) return places.back();
  }
  const std::size_t slash = folder.find('/');
  const std::string repository = "/datasets--" + folder.substr(0, slash) + "--" + folder.substr(slash + 1);
  for (const std::string& hubs : {below(lerobot, "/hub"), hub}) {
    if (hubs.empty()) continue;
    const std::string snapshot = snapshot_in(hubs + repository);
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
