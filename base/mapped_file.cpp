#include "base/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace troupe::base {

Result<MappedFile> MappedFile::open(const std::string& path, std::size_t least) {
  // O_NONBLOCK: opening a pipe that nobody writes must not wait.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    const Errc code = errno == ENOENT || errno == ENOTDIR ? Errc::not_found : Errc::unavailable;
    return Error{code, fmt::format("{}: cannot be opened: {}", path, std::strerror(errno))};
  }
  struct stat status {};
  const bool regular = ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
  const std::size_t size = regular ? static_cast<std::size_t>(status.st_size) : 0;
  if (!regular || size < least || size == 0) {
    ::close(fd);
    if (!regular) return Error{Errc::data_loss, fmt::format("{}: not a regular file", path)};
    return Error{Errc::data_loss, fmt::format("{}: only {} bytes (ends at offset {})", path, size, size)};
  }
  void* map = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  const int cause = errno;
  ::close(fd);
  if (map == MAP_FAILED) {
    return Error{Errc::unavailable, fmt::format("{}: cannot be mapped: {}", path, std::strerror(cause))};
  }
  return MappedFile(path, map, size);
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(map_, other.map_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (map_ != nullptr) ::munmap(map_, size_);
}

}  // namespace troupe::base
