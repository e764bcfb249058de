#include "base/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/file_io.h"

namespace troupe::base {

Result<MappedFile> MappedFile::open(const std::string& path, std::size_t least) {
  // O_NONBLOCK: opening a pipe that nobody writes must not wait.
  TROUPE_ASSIGN(const FileDescriptor fd, open_file(path, O_RDONLY | O_NONBLOCK));
  struct stat status {};
  const bool regular = ::fstat(fd.get(), &status) == 0 && S_ISREG(status.st_mode);
  const std::size_t size = regular ? static_cast<std::size_t>(status.st_size) : 0;
  if (!regular) return Error{Errc::data_loss, fmt::format("{}: not a regular file", path)};
  if (size < least || size == 0)
    return Error{Errc::data_loss, fmt::format("{}: only {} bytes (ends at offset {})", path, size, size)};
  void* map = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (map == MAP_FAILED) return file_error(path, "cannot be mapped", errno);
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
