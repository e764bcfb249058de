#pragma once

#include <string_view>

namespace troupe::base {

/// Logs the broken invariant once and aborts the process with SIGABRT; its node reports the exit and the controller
/// restarts the actor. `why` says which rule of ours was broken.
/// The line has the source file and line, the condition and `why`. Any thread.
[[noreturn]] void check_failed(const char* file, int line, const char* condition, std::string_view why);

}  // namespace troupe::base

/// For our own invariants only; bad input travels as Result.
/// Checked in every build type; `why` is evaluated only on failure and converts to std::string_view.
#define TROUPE_CHECK(cond, why)                                                  \
  do {                                                                           \
    if (!(cond)) ::troupe::base::check_failed(__FILE__, __LINE__, #cond, (why)); \
  } while (false)
