#include "base/file_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

#include "base/file_io.h"

namespace troupe::base {

namespace {

/// A look at a lock holds it shared for some microseconds; a taker waits for that at most so long.
constexpr std::chrono::seconds kLooks{2};

/// Whether the lock was got; not waiting. `kind`: LOCK_EX or LOCK_SH.
Result<bool> try_lock(const FileDescriptor& fd, int kind, const std::string& path) {
  while (::flock(fd.get(), kind | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno != EINTR) return file_error(path, "cannot be locked", errno);
  }
  return true;
}

/// The process id that the file holds; 0: none yet.
Result<int> pid_in(const FileDescriptor& fd, const std::string& path) {
  std::array<std::byte, 16> text{};
  TROUPE_ASSIGN(const std::size_t size, read_at(fd.get(), text, 0, path));
  const auto* begin = reinterpret_cast<const char*>(text.data());
  int pid = 0;
  std::from_chars(begin, begin + size, pid);
  return pid;
}

/// Whether the open file still has that name: an owner may have deleted it between open and flock.
bool is_named(const FileDescriptor& fd, const std::string& path) {
  struct stat open {};
  struct stat named {};
  return ::fstat(fd.get(), &open) == 0 && ::stat(path.c_str(), &named) == 0 && open.st_ino == named.st_ino &&
         open.st_dev == named.st_dev;
}

Error held(const std::string& path, int pid) {
  return {Errc::failed_precondition,
          fmt::format("{} is locked by {}; wait until it ends, or stop it", path,
                      pid > 0 ? fmt::format("process {}", pid) : std::string("another process"))};
}

}  // namespace

FileLock::FileLock(std::string path, FileDescriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

Result<FileLock> FileLock::acquire(const std::string& path) {
  const auto deadline = std::chrono::steady_clock::now() + kLooks;
  while (true) {
    TROUPE_ASSIGN(FileDescriptor fd, open_file(path, O_RDWR | O_CREAT));
    TROUPE_ASSIGN(const bool ours, try_lock(fd, LOCK_EX, path));
    if (ours && is_named(fd, path)) {
      if (::ftruncate(fd.get(), 0) != 0) return file_error(path, "cannot be written", errno);
      const std::string line = fmt::format("{}\n", ::getpid());
      TROUPE_TRY(write_all(fd.get(), std::as_bytes(std::span(line)), path));
      return FileLock(path, std::move(fd));
    }
    if (!ours) {
      // where a shared lock is granted nobody owns it: somebody only looked
      TROUPE_ASSIGN(const bool only_looked_at, try_lock(fd, LOCK_SH, path));
      if (!only_looked_at || std::chrono::steady_clock::now() > deadline) {
        TROUPE_ASSIGN(const int pid, pid_in(fd, path));
        return held(path, pid);
      }
    }
    std::this_thread::yield();
  }
}

Result<std::optional<int>> FileLock::holder(const std::string& path) {
  auto fd = open_file(path, O_RDONLY);
  if (!fd && fd.error().code() == Errc::not_found) return std::optional<int>{};
  if (!fd) return fd.error();
  TROUPE_ASSIGN(const bool is_free, try_lock(*fd, LOCK_SH, path));
  if (is_free) return std::optional<int>{};
  TROUPE_ASSIGN(const int pid, pid_in(*fd, path));
  return std::optional<int>{pid};
}

Result<void> FileLock::remove() {
  if (::unlink(path_.c_str()) != 0 && errno != ENOENT) return file_error(path_, "cannot be removed", errno);
  fd_.reset();
  return {};
}

}  // namespace troupe::base
