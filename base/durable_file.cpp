#include "base/durable_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace troupe::base {

namespace {

/// Closes a descriptor on the way out.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

Error file_error(const std::string& path, std::string_view what, int cause) {
  Errc code = Errc::unavailable;
  if (cause == ENOSPC || cause == EDQUOT) code = Errc::resource_exhausted;
  if (cause == ENOENT || cause == ENOTDIR) code = Errc::not_found;
  return {code, fmt::format("{}: {}: {}", path, what, std::strerror(cause))};
}

Result<void> sync_directory(const std::string& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return file_error(path, "cannot be opened", errno);
  if (::fsync(fd.get()) != 0) return file_error(path, "cannot be synced", errno);
  return {};
}

Result<void> write_file_synced(const std::string& path, std::string_view bytes) {
  const Descriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (fd.get() < 0) return file_error(path, "cannot be created", errno);
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return file_error(path, "cannot be written", errno);
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::fsync(fd.get()) != 0) return file_error(path, "cannot be synced", errno);
  return {};
}

Result<void> commit_file(const std::string& temporary, const std::string& path) {
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return file_error(path, "cannot be renamed into place", errno);
  const std::string parent = std::filesystem::path(path).parent_path();
  return sync_directory(parent.empty() ? "." : parent);
}

Result<void> write_file_durably(const std::string& path, std::string_view bytes) {
  const std::string temporary = path + ".tmp";
  TROUPE_TRY(write_file_synced(temporary, bytes));
  return commit_file(temporary, path);
}

}  // namespace troupe::base
