#include "data/lerobot/file_checks.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "base/file_io.h"

namespace troupe::data {

namespace fs = std::filesystem;

namespace {

/// First line of a Git LFS pointer; a pointer has at most 1023 bytes (the pointer format of git-lfs).
constexpr std::string_view kPointerBegin = "version https://git-lfs.github.com/spec/";
constexpr std::uintmax_t kMostPointerBytes = 1023;

/// The nearest folder at or above `folder` that is a git clone, else `folder`.
fs::path clone_of(const fs::path& folder) {
  std::error_code code;
  for (fs::path at = folder; !at.empty(); at = at.parent_path()) {
    if (fs::exists(at / ".git", code)) return at;
    if (at == at.parent_path()) break;
  }
  return folder;
}

/// A file that git checked out without its contents, and how to get them.
Error pointer_error(const std::string& path, const std::string& text) {
  std::string bytes = "?";
  if (const auto at = text.find("\nsize "); at != std::string::npos)
    bytes = text.substr(at + 6, text.find('\n', at + 6) - at - 6);
  std::error_code code;
  const fs::path whole = fs::absolute(path, code), clone = clone_of(whole.parent_path());
  return {
      Errc::data_loss,
      fmt::format("{} is a Git LFS pointer, not the file ({} bytes): fetch it with git -C '{}' lfs pull --include '{}'",
                  path, bytes, clone.string(), whole.lexically_relative(clone).generic_string())};
}

}  // namespace

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
  std::string begin(size <= kMostPointerBytes ? size : 1, '\0');
  if (!file.read(begin.data(), static_cast<std::streamsize>(begin.size()))) {
    return Error{Errc::data_loss,
                 fmt::format("{} cannot be read: {}", path, errno != 0 ? std::strerror(errno) : "read failed")};
  }
  if (begin.starts_with(kPointerBegin)) return pointer_error(path, begin);
  return static_cast<std::int64_t>(size);
}

Result<void> require_text_file(const std::string& path) {
  TROUPE_ASSIGN(const std::int64_t size, require_regular_file(path));
  if (size <= kMostTextBytes) return {};
  return Error{Errc::data_loss,
               fmt::format("{} has {} bytes; of a file of metadata at most {} are read", path, size, kMostTextBytes)};
}

Result<std::string> read_text_file(const std::string& path) {
  TROUPE_TRY(require_text_file(path));
  return base::read_file(path, kMostTextBytes);
}

}  // namespace troupe::data
