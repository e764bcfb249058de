#pragma once

#include "app/commands.h"
#include "base/result.h"

namespace troupe::app {

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

/// The same for commands whose input is files of data: damage in them is a finding of its own (6).
inline int data_exit_code_of(const Error& error) {
  return error.code() == Errc::data_loss ? static_cast<int>(kDataProblem) : exit_code_of(error);
}

/// Says on stderr what went wrong: "error: " and the message. Returns `code`, for the caller to return.
int complain(const Error& error, int code);
/// The same with exit_code_of(error), and with data_exit_code_of(error).
inline int complain(const Error& error) { return complain(error, exit_code_of(error)); }
inline int complain_of_data(const Error& error) { return complain(error, data_exit_code_of(error)); }

}  // namespace troupe::app
