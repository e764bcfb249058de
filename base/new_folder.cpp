#include "base/new_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/durable_file.h"
#include "base/file_io.h"

namespace troupe::base {

namespace fs = std::filesystem;

Result<NewFolder> NewFolder::begin(std::string name) {
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  std::error_code failed;
  const bool is_free = !fs::exists(name, failed) || (fs::is_directory(name, failed) && fs::is_empty(name, failed));
  if (!is_free) {
    return Error{Errc::failed_precondition,
                 fmt::format("{} exists and is not an empty folder; remove it or name another one", name)};
  }
  NewFolder folder(name, fmt::format("{}.tmp-{}", name, ::getpid()));
  fs::remove_all(folder.path_, failed);
  TROUPE_TRY(make_folders(folder.path_));
  return folder;
}

NewFolder::NewFolder(std::string name, std::string path) : name_(std::move(name)), path_(std::move(path)) {}

NewFolder::NewFolder(NewFolder&& other) noexcept
    : name_(std::move(other.name_)), path_(std::exchange(other.path_, {})) {}

NewFolder::~NewFolder() { remove(); }

void NewFolder::remove() noexcept {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
  path_.clear();
}

Result<void> NewFolder::publish() {
  TROUPE_ASSIGN(const FileDescriptor fd, open_file(path_, O_RDONLY | O_DIRECTORY));
  if (::syncfs(fd.get()) != 0) return file_error(path_, "cannot be made durable", errno);  // one call for all files
  std::error_code failed;
  fs::rename(path_, name_, failed);
  if (failed) {
    remove();
    if (failed == std::errc::directory_not_empty || failed == std::errc::file_exists ||
        failed == std::errc::not_a_directory) {
      return Error{Errc::failed_precondition,
                   fmt::format("{} appeared meanwhile: {}; remove it or name another folder", name_, failed.message())};
    }
    return file_error(name_, "cannot be named", failed.value());
  }
  path_.clear();
  const std::string above = fs::path(name_).parent_path().string();
  return sync_directory(above.empty() ? "." : above);
}

}  // namespace troupe::base
