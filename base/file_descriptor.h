#pragma once

#include <unistd.h>

#include <utility>

namespace troupe::base {

/// Owns an open descriptor and closes it on destruction; -1 stands for none. Not thread-safe.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  /// Takes over `fd`, the answer of open(2) and its like; a negative one is none.
  explicit FileDescriptor(int fd) noexcept : fd_(fd) {}
  /// The moved-from object holds none; what the assigned one held is closed.
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~FileDescriptor() { reset(); }

  int get() const noexcept { return fd_; }
  bool is_open() const noexcept { return fd_ >= 0; }
  /// Hands the descriptor to the caller, who closes it.
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
  /// Closes what is held and takes over `fd`.
  void reset(int fd = -1) noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

}  // namespace troupe::base
