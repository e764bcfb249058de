#include "workers/node/runtime_directory.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/file_io.h"
#include "base/log.h"

namespace troupe::workers {

namespace {

namespace fs = std::filesystem;
constexpr const char* kLockEnding = ".lock";

/// Makes a folder, or finds one, that nobody else may enter.
Result<void> make_private(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return file_error(folder, "cannot create runtime folder", errno);
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) return file_error(folder, "cannot inspect", errno);
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::getuid() || (info.st_mode & 077) != 0) {
    return Error{
        Errc::failed_precondition,
        fmt::format("{}: must be a folder of this user with mode 0700; remove it or set XDG_RUNTIME_DIR", folder)};
  }
  return {};
}

bool remove_folder(const std::string& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  if (error) log::warn("{}: cannot be removed: {}", folder, error.message());
  return !error;
}

/// Removes what owners left behind that were killed. A folder without a lock file is not touched: no owner of this
/// program made it.
void remove_leftovers(const std::string& base, const std::string& own_lock) {
  std::vector<std::string> locks;
  std::error_code error;  // an unreadable folder has nothing that could be removed
  for (const auto& entry : fs::directory_iterator(base, error)) {
    const std::string path = entry.path();
    if (path.ends_with(kLockEnding) && path != own_lock) locks.push_back(path);
  }
  for (const std::string& path : locks) {
    auto lock = FileLock::acquire(path);
    if (!lock) continue;  // its owner lives
    const std::string folder = path.substr(0, path.size() - std::string(kLockEnding).size());
    if (!remove_folder(folder)) continue;
    log::info("{}: removed; its owner was killed", folder);
    if (auto gone = lock->remove(); !gone) log::warn("{}", gone.error().message());
  }
}

}  // namespace

Result<RuntimeDirectory> RuntimeDirectory::take(const std::string& id) {
  const char* xdg = std::getenv("XDG_RUNTIME_DIR");
  const std::string base = xdg && *xdg ? fmt::format("{}/troupe", xdg) : fmt::format("/tmp/troupe-{}", ::getuid());
  TROUPE_TRY(make_private(base));
  RuntimeDirectory taken;
  const std::string path = base + "/" + id;
  TROUPE_ASSIGN(taken.lock_, FileLock::acquire(path + kLockEnding));
  remove_leftovers(base, path + kLockEnding);
  taken.path_ = path;
  remove_folder(path);  // of a killed owner of this id; what stays is found by make_private
  TROUPE_TRY(make_private(path));
  return taken;
}

RuntimeDirectory::RuntimeDirectory(RuntimeDirectory&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::exchange(other.lock_, std::nullopt)) {}

RuntimeDirectory& RuntimeDirectory::operator=(RuntimeDirectory&& other) noexcept {
  if (this == &other) return *this;
  remove();
  path_ = std::exchange(other.path_, {});
  lock_ = std::exchange(other.lock_, std::nullopt);
  return *this;
}

void RuntimeDirectory::remove() {
  if (!lock_) return;
  if (path_.empty() || remove_folder(path_)) {
    if (auto gone = lock_->remove(); !gone) log::warn("{}", gone.error().message());
  }
  lock_.reset();
  path_.clear();
}

}  // namespace troupe::workers
