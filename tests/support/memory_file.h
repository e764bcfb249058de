#pragma once

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "tests/support/visible.h"

namespace troupe::testing {

/// A file in memory that can be opened by path.
class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("fuzz", MFD_CLOEXEC)), path_(fmt::format("/proc/self/fd/{}", fd_)) {
    if (fd_ < 0) std::abort();
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(fd_); }

  void fill(std::string_view bytes) {
    const auto size = static_cast<off_t>(bytes.size());
    if (::ftruncate(fd_, size) != 0 || ::pwrite(fd_, bytes.data(), bytes.size(), 0) != size) std::abort();
  }
  const std::string& path() const { return path_; }

 private:
  int fd_;
  std::string path_;
};

}  // namespace troupe::testing
