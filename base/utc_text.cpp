#include "base/utc_text.h"

#include <fmt/chrono.h>

#include <ctime>

namespace troupe::base {

std::string utc_text(double wall_seconds) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(wall_seconds)));
}

}  // namespace troupe::base
