#include "base/hugging_face.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace troupe::base {

namespace {

namespace fs = std::filesystem;

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

/// owner/name and what stands behind it.
struct RepoPath {
  std::string id, rest;
};

RepoPath split_repo_path(const std::string& text) {
  const std::size_t name = text.find('/');
  const std::size_t rest = name == std::string::npos ? name : text.find('/', name + 1);
  return {text.substr(0, rest), rest == std::string::npos ? "" : text.substr(rest + 1)};
}

/// Names that people give to folders of their own, and no owner on the Hub.
bool is_folder_word(std::string_view name) {
  constexpr std::string_view kWords[] = {"weights", "models", "checkpoints", "data", "datasets", "runs", "exported"};
  return std::find(std::begin(kWords), std::end(kWords), name) != std::end(kWords);
}

}  // namespace

HubFolders hub_folders() {
  const std::string home = folder_of("HOME", "");
  const std::string cache = folder_of("XDG_CACHE_HOME", below(home, "/.cache"));
  const std::string hugging_face = folder_of("HF_HOME", below(cache, "/huggingface"));
  return {.hub = folder_of("HF_HUB_CACHE", folder_of("HUGGINGFACE_HUB_CACHE", below(hugging_face, "/hub"))),
          .lerobot = folder_of("HF_LEROBOT_HOME", below(hugging_face, "/lerobot"))};
}

bool is_repo_id(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == text.size() || text.front() == '.') return false;
  if (is_folder_word(text.substr(0, slash))) return false;
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.' || c == '/';
  };
  return std::all_of(text.begin(), text.end(), allowed) && text.find('/', slash + 1) == std::string_view::npos &&
         text[slash + 1] != '.';
}

std::string find_snapshot(const std::string& repository, const std::function<bool(const std::string&)>& fits) {
  std::ifstream ref(repository + "/refs/main");
  if (std::string commit; std::getline(ref, commit)) {
    while (!commit.empty() && static_cast<unsigned char>(commit.back()) <= ' ') commit.pop_back();
    std::string folder = repository + "/snapshots/" + commit;
    if (!commit.empty() && commit.find('/') == commit.npos && fits(folder)) return folder;
  }
  std::string newest;
  fs::file_time_type newest_time{};
  std::error_code code;
  for (fs::directory_iterator it(repository + "/snapshots", code), end; !code && it != end; it.increment(code)) {
    const std::string folder = it->path().string();
    std::error_code unreadable;
    const auto time = fs::last_write_time(it->path(), unreadable);
    if (unreadable || !fits(folder)) continue;
    if (newest.empty() || time > newest_time || (time == newest_time && folder > newest)) {
      newest = folder;
      newest_time = time;
    }
  }
  return newest;
}

std::string download_hint(const std::string& path_or_repo_id) {
  const RepoPath repo = split_repo_path(path_or_repo_id);
  std::error_code code;
  if (!is_repo_id(repo.id) || fs::exists(repo.id.substr(0, repo.id.find('/')), code)) return {};
  const std::string files = repo.rest.empty()                     ? ""
                            : fs::path(repo.rest).has_extension() ? " " + repo.rest
                                                                  : fmt::format(" --include '{}/*'", repo.rest);
  return fmt::format("to download it from the Hugging Face Hub:\n  hf download {}{}", repo.id, files);
}

Result<std::string> find_model_files(const std::string& path_or_repo_id) {
  std::string path = path_or_repo_id;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  std::error_code code;
  if (fs::exists(path, code)) return path;
  const RepoPath repo = split_repo_path(path);
  if (!is_repo_id(repo.id)) return Error{Errc::not_found, fmt::format("{} does not exist", path)};
  const std::size_t slash = repo.id.find('/');
  const std::string repository =
      fmt::format("{}/models--{}--{}", hub_folders().hub, repo.id.substr(0, slash), repo.id.substr(slash + 1));
  const auto has_rest = [&](const std::string& snapshot) {
    std::error_code unseen;
    return fs::exists(snapshot + "/" + repo.rest, unseen);
  };
  const std::string snapshot = find_snapshot(repository, has_rest);
  if (!snapshot.empty()) return repo.rest.empty() ? snapshot : snapshot + "/" + repo.rest;
  const std::string hint = download_hint(path);
  if (hint.empty()) return Error{Errc::not_found, fmt::format("{} does not exist", path)};
  return Error{Errc::not_found,
               fmt::format("{} does not exist, nor does {}/snapshots have it (nothing is downloaded)\n{}", path,
                           repository, hint)};
}

}  // namespace troupe::base
