#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace troupe::data {

/// Size in bytes of a readable, non-empty regular file (or a link to one).
/// Errors: not_found (missing, dangling link), data_loss (a folder or device where a file should be, zero bytes,
/// unreadable, a Git LFS pointer in place of the file: the text has the command that fetches it).
Result<std::int64_t> require_regular_file(const std::string& path);

/// Bytes of a text file that is read as a whole; a list of a million episodes has less.
inline constexpr std::int64_t kMostTextBytes = std::int64_t{256} << 20;

/// Errors: those of require_regular_file; data_loss for more than kMostTextBytes.
Result<void> require_text_file(const std::string& path);

/// Whole contents of a text file. Errors: those of require_text_file, and of read_file (base/file_io.h).
Result<std::string> read_text_file(const std::string& path);

}  // namespace troupe::data
