#include "data/lerobot/file_checks.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/file_io.h"

namespace troupe::data {

namespace fs = std::filesystem;

Result<std::int64_t> require_regular_file(const std::string& path) {
  std::error_code code;
  const fs::file_status link = fs::symlink_status(path, code);
  if (link.type() == fs::file_type::not_found) return Error{Errc::not_found, fmt::format("{} does not exist", path)};
  const fs::file_status target = fs::status(path, code);
  if (target.type() == fs::file_type::not_found) {
    const std::string to = fs::read_symlink(path, code).string();
    return Error{Errc::not_found, fmt::format("{} is a link to {}, which does not exist", path, to)};
  }
  if (target.type() == fs::file_type::directory) {
    return Error{Errc::data_loss, fmt::format("{} is a folder; a file is wanted", path)};
  }
  if (target.type() != fs::file_type::regular) {
    return Error{Errc::data_loss,
                 fmt::format("{} is not a regular file ({})", path, code ? code.message() : "a device")};
  }
  const std::uintmax_t size = fs::file_size(path, code);
  if (code) return Error{Errc::data_loss, fmt::format("{} cannot be read: {}", path, code.message())};
  if (size == 0) return Error{Errc::data_loss, fmt::format("{} has zero bytes", path)};
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  char first = 0;
  if (!file.read(&first, 1)) {
    return Error{Errc::data_loss,
                 fmt::format("{} cannot be read: {}", path, errno != 0 ? std::strerror(errno) : "read failed")};
  }
  return static_cast<std::int64_t>(size);
}

Result<std::string> read_text_file(const std::string& path) {
  TROUPE_ASSIGN([[maybe_unused]] const std::int64_t size, require_regular_file(path));
  return base::read_file(path);
}

}  // namespace troupe::data
