#pragma once

#include <string_view>

namespace troupe {

/// Logs the broken invariant once and aborts the process; the supervisor replaces it (style.md section 5).
[[noreturn]] void check_failed(const char* file, int line, const char* condition, std::string_view why);

}  // namespace troupe

/// For our own invariants only; bad input travels as Result.
#define TROUPE_CHECK(cond, why)                                            \
  do {                                                                     \
    if (!(cond)) ::troupe::check_failed(__FILE__, __LINE__, #cond, (why)); \
  } while (false)
