#include "base/durable_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/file_io.h"
#include "base/ids.h"

namespace troupe::base {

namespace {

Result<void> sync(int fd, const std::string& path) {
  if (::fsync(fd) != 0) return file_error(path, "cannot be synced", errno);
  return {};
}

Result<void> sync_path(const std::string& path, int flags) {
  TROUPE_ASSIGN(const FileDescriptor fd, open_file(path, flags));
  return sync(fd.get(), path);
}

/// Writes `file`; errors name `path`.
Result<void> write_synced(const std::string& file, int flags, unsigned mode, std::string_view bytes,
                          const std::string& path) {
  const FileDescriptor fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, mode));
  if (!fd.is_open()) return file_error(path, "cannot be created", errno);
  TROUPE_TRY(write_all(fd.get(), std::as_bytes(std::span(bytes)), path));
  return sync(fd.get(), path);
}

}  // namespace

Result<void> sync_file(const std::string& path) { return sync_path(path, O_RDONLY); }
Result<void> sync_directory(const std::string& path) { return sync_path(path, O_RDONLY | O_DIRECTORY); }

Result<void> make_folders_durably(const std::string& path, const std::string& synced_up_to) {
  namespace fs = std::filesystem;
  const fs::path whole = fs::absolute(path).lexically_normal();
  const fs::path top = synced_up_to.empty() ? fs::path() : fs::absolute(synced_up_to).lexically_normal();
  std::error_code ignored;  // a path that cannot be looked at is one that make_folders() complains of
  std::vector<fs::path> parents;
  for (fs::path at = whole; at.has_relative_path(); at = at.parent_path()) {
    if (at.filename().empty()) continue;  // a slash at the end
    const bool is_missing = !fs::exists(at, ignored);
    const bool is_below_top =
        !top.empty() && at != top && std::mismatch(top.begin(), top.end(), at.begin(), at.end()).first == top.end();
    if (!is_missing && !is_below_top) break;
    parents.push_back(at.parent_path());
  }
  TROUPE_TRY(make_folders(path));
  for (const fs::path& parent : parents) TROUPE_TRY(sync_directory(parent.string()));
  return {};
}

Result<void> write_file_synced(const std::string& path, std::string_view bytes) {
  return write_synced(path, O_TRUNC, 0644, bytes, path);
}

Result<void> commit_file(const std::string& temporary, const std::string& path) {
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return file_error(path, "cannot be renamed into place", errno);
  const std::string parent = std::filesystem::path(path).parent_path();
  return sync_directory(parent.empty() ? "." : parent);
}

Result<void> write_file_durably(const std::string& path, std::string_view bytes, unsigned mode) {
  std::uint64_t tag = 0;
  random_bytes(&tag, sizeof tag);
  const std::string temporary = fmt::format("{}.{:016x}.tmp", path, tag);
  auto written = write_synced(temporary, O_EXCL | O_NOFOLLOW, mode, bytes, path);
  if (written) written = commit_file(temporary, path);
  if (!written) ::unlink(temporary.c_str());
  return written;
}

}  // namespace troupe::base
