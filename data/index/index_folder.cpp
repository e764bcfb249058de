#include "data/index/index_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/cache_home.h"
#include "base/hash.h"

namespace troupe::data {

namespace {

namespace fs = std::filesystem;

std::string own_name(const std::string& root) {
  std::error_code code;
  fs::path real = fs::weakly_canonical(root, code);
  if (code) real = fs::absolute(root, code);
  return fmt::format("{}-{}", real.filename().string(), to_hex(xxh3_64(real.string())));
}

/// The folder, or the nearest parent that exists, can be written.
bool can_be_made(const std::string& path) {
  std::error_code code;
  fs::path at = path;
  while (!at.empty() && !fs::exists(at, code)) {
    if (at == at.parent_path()) return false;
    at = at.parent_path();
  }
  return is_writable_folder(at.empty() ? "." : at.string());
}

}  // namespace

bool is_writable_folder(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode) || (facts.st_mode & S_IWUSR) == 0) return false;
  return ::access(path.c_str(), W_OK | X_OK) == 0;
}

IndexFolders index_folders(const std::string& dataset_root, const IndexConfig& config) {
  const bool beside_first = config.path == "beside";
  IndexFolders out;
  const std::string cache = cache_home(), name = own_name(dataset_root);
  if (!cache.empty()) out.times = cache + "/troupe/times/" + name;
  if (!config.path.empty() && !beside_first) {
    out.read = {config.path + "/" + name};
  } else {
    const std::string beside = dataset_root + "/.troupe/index";
    if (!cache.empty()) out.read = {cache + "/troupe/index/" + name};
    out.read.insert(beside_first ? out.read.begin() : out.read.end(), beside);
  }
  for (const std::string& folder : out.read) {
    // inside the dataset only where that was asked for and the dataset itself may be written
    const bool beside = folder.starts_with(dataset_root + "/.troupe");
    if (beside && (!beside_first || !is_writable_folder(dataset_root))) continue;
    if (!can_be_made(folder)) continue;
    out.write = folder;
    break;
  }
  return out;
}

}  // namespace troupe::data
