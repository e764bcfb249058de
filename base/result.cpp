#include "base/result.h"

#include <cstdio>
#include <cstdlib>

namespace troupe::base {

std::string_view to_string(Errc code) noexcept {
  switch (code) {
    case Errc::invalid_argument:
      return "invalid_argument";
    case Errc::not_found:
      return "not_found";
    case Errc::failed_precondition:
      return "failed_precondition";
    case Errc::resource_exhausted:
      return "resource_exhausted";
    case Errc::deadline_exceeded:
      return "deadline_exceeded";
    case Errc::unavailable:
      return "unavailable";
    case Errc::aborted:
      return "aborted";
    case Errc::data_loss:
      return "data_loss";
    case Errc::cancelled:
      return "cancelled";
    case Errc::internal:
      return "internal";
  }
  return "unknown";
}

std::string Error::to_string() const { return std::string(base::to_string(code_)) + ": " + message_; }

void check_failed(const char* file, int line, const char* condition, std::string_view why) {
  std::fprintf(stderr, "troupe: broken invariant at %s:%d: %s (%.*s)\n", file, line, condition,
               static_cast<int>(why.size()), why.data());
  std::fflush(stderr);
  std::abort();
}

}  // namespace troupe::base
