#include "comm/control/guarded_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <span>

#include "base/file_io.h"

namespace troupe::comm {

namespace {

/// Bits of group and others that must not be set, and what they would allow.
struct Closed {
  unsigned bits;
  const char *danger, *mend;
};
Closed closed(Guard guard) {
  return guard == Guard::secret ? Closed{077, "others may read it", "chmod 600"}
                                : Closed{022, "others may change it", "chmod go-w"};
}

Result<void> check(const struct stat& info, const std::string& path, const std::string& what, const Closed& wanted) {
  const bool is_roots_list = wanted.bits == 022 && info.st_uid == 0;  // root may write anywhere anyway
  if (info.st_uid != ::geteuid() && !is_roots_list) {
    return Error{Errc::failed_precondition, fmt::format("{} {} belongs to user {}; this process runs as {}", what, path,
                                                        info.st_uid, ::geteuid())};
  }
  if ((info.st_mode & wanted.bits) != 0) {
    return Error{Errc::failed_precondition, fmt::format("{} {} has mode {:04o}; {}. Run: {} {}", what, path,
                                                        info.st_mode & 07777, wanted.danger, wanted.mend, path)};
  }
  return {};
}

}  // namespace

Result<std::string> read_guarded_file(const std::string& path, const std::string& what, Guard guard, std::size_t most) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) {
    if (errno == ENOENT) return Error{Errc::not_found, fmt::format("{} {} does not exist", what, path)};
    if (errno == ELOOP)
      return Error{Errc::failed_precondition,
                   fmt::format("{} {} is a symbolic link; give the file itself", what, path)};
    return file_error(path, "cannot be opened", errno);
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return file_error(path, "cannot be looked at", errno);
  if (!S_ISREG(info.st_mode))
    return Error{Errc::failed_precondition, fmt::format("{} {} is not a regular file", what, path)};
  TROUPE_TRY(check(info, path, what, closed(guard)));
  if (guard == Guard::list) {
    // who may write the folder may put another list in its place
    const auto parent = std::filesystem::path(path).parent_path();
    const std::string folder = parent.empty() ? std::string(".") : parent.string();
    struct stat above {};
    if (::stat(folder.c_str(), &above) != 0) return file_error(folder, "cannot be looked at", errno);
    TROUPE_TRY(check(above, folder, "the folder of the " + what, closed(guard)));
  }
  std::string text(most + 1, '\0');
  TROUPE_ASSIGN(const std::size_t size, read_at(file.get(), std::as_writable_bytes(std::span(text)), 0, path));
  if (size > most) return Error{Errc::invalid_argument, fmt::format("{} {} is larger than {} bytes", what, path, most)};
  text.resize(size);
  return text;
}

}  // namespace troupe::comm
