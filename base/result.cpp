#include "base/result.h"

#include <cstdio>
#include <cstdlib>

#include "base/log.h"

namespace troupe::base {

std::string Error::to_string() const { return std::string(enum_name(code_)) + ": " + message_; }

void check_failed(const char* file, int line, const char* condition, std::string_view why) {
  std::fprintf(stderr, "troupe: broken invariant at %s:%d: %s (%.*s)\n", file, line, condition,
               static_cast<int>(why.size()), why.data());
  std::fflush(stderr);
  log::flush();
  std::abort();
}

}  // namespace troupe::base
