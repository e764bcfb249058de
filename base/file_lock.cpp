#include "base/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <span>

#include "base/file_io.h"

namespace troupe::base {

namespace {

pid_t written_pid(int fd, const std::string& path) {
  std::string text(32, '\0');
  const auto read = read_at(fd, std::as_writable_bytes(std::span(text)), 0, path);
  return read ? static_cast<pid_t>(std::strtol(text.c_str(), nullptr, 10)) : 0;
}

/// Tries again for a while that nobody notices: holder() has the lock for a moment.
bool lock_soon(int fd) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK || std::chrono::steady_clock::now() > until) return false;
    ::sched_yield();
  }
  return true;
}

}  // namespace

Result<FileLock> FileLock::acquire(const std::string& path) {
  TROUPE_ASSIGN(FileDescriptor fd, open_file(path, O_RDWR | O_CREAT));
  if (!lock_soon(fd.get())) {
    if (errno != EWOULDBLOCK) return file_error(path, "cannot be locked", errno);
    return Error{Errc::failed_precondition,
                 fmt::format("{}: held by another process (pid {})", path, written_pid(fd.get(), path))};
  }
  if (::ftruncate(fd.get(), 0) != 0) return file_error(path, "cannot be written", errno);
  const std::string pid = fmt::format("{}\n", ::getpid());
  TROUPE_TRY(write_all(fd.get(), std::as_bytes(std::span(pid)), path));
  return FileLock(std::move(fd));
}

std::optional<pid_t> FileLock::holder(const std::string& path) {
  const auto fd = open_file(path, O_RDONLY);
  if (!fd) return std::nullopt;
  if (::flock(fd->get(), LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return std::nullopt;
  return written_pid(fd->get(), path);
}

}  // namespace troupe::base
