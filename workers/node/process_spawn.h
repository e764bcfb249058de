#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "workers/node/process.h"

namespace troupe::workers {

/// A descriptor that closes itself.
class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~OwnedFd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const noexcept { return fd_; }
  bool is_open() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// A child that runs, or has ended and was not waited for.
struct SpawnedChild {
  pid_t pid = 0;
  OwnedFd pidfd;
  /// Size of its log before it started.
  std::int64_t log_begin = 0;
};

/// posix_spawn with the attributes that ProcessTable promises. Call from a thread that outlives the child.
Result<SpawnedChild> spawn_child(const ProcessSpec& spec);

/// "NAME=value" lines of a child: allow-listed variables of this process, then `spec.env`, then TROUPE_PARENT_PID.
std::vector<std::string> child_environment(const ProcessSpec& spec);

/// The last 4 KiB of the file from `begin` on, as UTF-8.
std::string read_tail(const std::string& file, std::int64_t begin);

/// How often the kernel's out-of-memory killer struck in this process's cgroup; 0 if that cannot be read.
std::uint64_t count_oom_kills();

}  // namespace troupe::workers
