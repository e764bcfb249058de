#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "base/result.h"

namespace troupe::configs {

/// A file that is not what its format says, or that breaks a limit on what is read from outside; thrown inside the
/// readers of such files, turned into an Error at their edge. `offset` is where in the file the damage was seen.
struct FormatError : std::runtime_error {
  FormatError(std::int64_t at, const std::string& message) : std::runtime_error(message), offset(at) {}
  /// bytes from the begin of the file
  std::int64_t offset;

  /// data_loss "path: message (at offset N)".
  Error in(const std::string& path) const {
    return {Errc::data_loss, path + ": " + what() + " (at offset " + std::to_string(offset) + ")"};
  }
};

}  // namespace troupe::configs
