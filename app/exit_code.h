#pragma once

#include "app/commands.h"
#include "base/result.h"

namespace troupe {

/// The exit code of a command that ended with this error: wrong input is the user's to mend (2), damaged files and
/// everything else are a command that failed (4).
inline int exit_code_of(const Error& error) {
  switch (error.code()) {
    case Errc::invalid_argument:
    case Errc::not_found:
    case Errc::failed_precondition:
      return kUsage;
    default:
      return kFailed;
  }
}

}  // namespace troupe
