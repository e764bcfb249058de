#pragma once

#include <sys/eventfd.h>

#include <cerrno>
#include <cstdint>

#include "base/file_descriptor.h"

namespace troupe::base {

/// An eventfd(2) with which any thread ends another one's poll(): readable from raise() until clear().
class EventFd {
 public:
  /// Close-on-exec and non-blocking. Not open when the process is out of descriptors; errno says why.
  EventFd() noexcept : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  /// For the poll set.
  int get() const noexcept { return fd_.get(); }
  bool is_open() const noexcept { return fd_.is_open(); }
  /// Any thread.
  void raise() const noexcept {
    const std::uint64_t one = 1;
    while (::write(get(), &one, sizeof one) < 0 && errno == EINTR) {
    }
  }
  /// The polling thread, before it looks at what it was told of: a raise() in between shows in the next poll().
  void clear() const noexcept {
    std::uint64_t count = 0;
    while (::read(get(), &count, sizeof count) < 0 && errno == EINTR) {
    }
  }

 private:
  FileDescriptor fd_;
};

}  // namespace troupe::base
