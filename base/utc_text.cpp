#include "base/utc_text.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <ctime>

namespace troupe::base {

std::string utc_text(double wall_seconds) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(wall_seconds)));
}

bool is_utc_text(std::string_view text) noexcept {
  constexpr std::string_view kForm = "0000-00-00T00:00:00Z";
  return std::equal(text.begin(), text.end(), kForm.begin(), kForm.end(),
                    [](char c, char form) { return form == '0' ? c >= '0' && c <= '9' : c == form; });
}

}  // namespace troupe::base
