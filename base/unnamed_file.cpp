#include "base/unnamed_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstdlib>

#include "base/file_io.h"

namespace troupe::base {

namespace {

/// Where the file system has no O_TMPFILE, the name lasts for a moment.
FileDescriptor open_unnamed(const std::string& folder) {
  FileDescriptor file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.is_open() || (errno != EOPNOTSUPP && errno != EISDIR)) return file;
  std::string name = folder + "/unnamed-XXXXXX";
  file.reset(::mkostemp(name.data(), O_CLOEXEC));
  if (file.is_open() && ::unlink(name.c_str()) != 0) file.reset();
  return file;
}

}  // namespace

Result<FileDescriptor> make_unnamed_file(const std::string& folder, std::int64_t bytes) {
  TROUPE_TRY(make_folders(folder));
  FileDescriptor file = open_unnamed(folder);
  if (!file.is_open()) return file_error(folder, "no file can be made in it", errno);
  struct statfs disk {};
  if (::fstatfs(file.get(), &disk) != 0) return file_error(folder, "its file system cannot be asked", errno);
  if (disk.f_type == TMPFS_MAGIC || disk.f_type == RAMFS_MAGIC) {
    return Error{Errc::failed_precondition,
                 fmt::format("{}: this folder lies in memory; name one on a local disk", folder)};
  }
  const int reserved = bytes == 0 ? 0 : ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes));
  if (reserved != 0) return file_error(folder, fmt::format("{} bytes cannot be reserved on its disk", bytes), reserved);
  return file;
}

}  // namespace troupe::base
