#pragma once

// Internal to data: Arrow's types.
#include <arrow/util/io_util.h>
#include <fmt/format.h>

#include <string>

#include "base/file_io.h"

namespace troupe::data {

/// What Arrow says of a file that it could not write: file_error() for a failed system call, else internal.
inline Error write_failure(const std::string& path, const arrow::Status& status) {
  const int cause = arrow::internal::ErrnoFromStatus(status);
  if (cause != 0) return file_error(path, "cannot be written", cause);
  return {Errc::internal, fmt::format("{}: {}", path, status.ToString())};
}

}  // namespace troupe::data
