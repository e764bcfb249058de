#include "model/io/durable_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace troupe {
namespace {

Error system_error(const std::string& path, const char* what, int cause) {
  const Errc code = cause == ENOSPC || cause == EDQUOT ? Errc::resource_exhausted : Errc::unavailable;
  return {code, fmt::format("{}: {}: {}", path, what, std::strerror(cause))};
}

/// An open file that closes itself.
struct Descriptor {
  int fd;
  explicit Descriptor(int opened) : fd(opened) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

Result<void> write_synced(const std::string& path, std::string_view text) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (file.fd < 0) return system_error(path, "cannot be created", errno);
  while (!text.empty()) {
    const ssize_t n = ::write(file.fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_error(path, "cannot be written", errno);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::fsync(file.fd) != 0) return system_error(path, "cannot be synced", errno);
  return {};
}

}  // namespace

Result<void> commit_file(const std::string& temporary, const std::string& path) {
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return system_error(path, "cannot be renamed to", errno);
  const auto parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.fd < 0 || ::fsync(opened.fd) != 0) return system_error(folder, "cannot be synced", errno);
  return {};
}

Result<void> write_text_durably(const std::string& path, std::string_view text) {
  const std::string temporary = path + ".tmp";
  TROUPE_TRY(write_synced(temporary, text));
  return commit_file(temporary, path);
}

}  // namespace troupe
