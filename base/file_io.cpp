#include "base/file_io.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace troupe::base {

Errc errc_of_errno(int cause) noexcept {
  switch (cause) {
    case ENOENT:
    case ENOTDIR:
      return Errc::not_found;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return Errc::resource_exhausted;
    case EACCES:
    case EPERM:
    case EROFS:
    case EEXIST:
    case EISDIR:
    case ENOTEMPTY:
    case ELOOP:
    case ENAMETOOLONG:
      return Errc::failed_precondition;
    default:
      return Errc::unavailable;
  }
}

Error file_error(const std::string& path, std::string_view what, int cause) {
  return {errc_of_errno(cause), fmt::format("{}: {}: {}", path, what, std::strerror(cause))};
}

Result<FileDescriptor> open_file(const std::string& path, int flags, unsigned mode) {
  FileDescriptor fd(::open(path.c_str(), flags | O_CLOEXEC, mode));
  if (!fd.is_open()) return file_error(path, flags & O_CREAT ? "cannot be created" : "cannot be opened", errno);
  return fd;
}

Result<std::uint64_t> file_size(int fd, const std::string& path) {
  struct stat facts {};
  if (::fstat(fd, &facts) != 0) return file_error(path, "cannot be looked at", errno);
  return static_cast<std::uint64_t>(facts.st_size);
}

Result<std::size_t> read_at(int fd, std::span<std::byte> out, std::uint64_t offset, const std::string& path) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = ::pread(fd, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return file_error(path, "cannot be read", errno);
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

Result<void> write_all(int fd, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return file_error(path, "cannot be written", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Result<std::string> read_file(const std::string& path, std::int64_t most) {
  TROUPE_ASSIGN(const FileDescriptor fd, open_file(path, O_RDONLY));
  TROUPE_ASSIGN(const std::uint64_t size, file_size(fd.get(), path));
  // one byte more than the file is said to have: its end shows without another round
  std::string text(static_cast<std::size_t>(std::min(size, static_cast<std::uint64_t>(most))) + 1, '\0');
  std::size_t done = 0;
  while (true) {
    // read(), not pread(): a pipe has no offsets
    const ssize_t n = ::read(fd.get(), text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return file_error(path, "cannot be read", errno);
    done += static_cast<std::size_t>(n);
    if (done > static_cast<std::uint64_t>(most))
      return Error{Errc::data_loss, fmt::format("{}: larger than the {} bytes allowed", path, most)};
    if (n == 0) break;
    if (done == text.size()) text.resize(std::max<std::size_t>(2 * done, 4096));
  }
  text.resize(done);
  return text;
}

std::int64_t bytes_below(const std::string& folder) {
  std::int64_t bytes = 0;
  std::error_code error;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder, error)) {
    if (file.is_regular_file(error)) bytes += static_cast<std::int64_t>(file.file_size(error));
  }
  return bytes;
}

Result<void> make_folders(const std::string& path) {
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  if (failed) return file_error(path, "cannot be created", failed.value());
  return {};
}

}  // namespace troupe::base
