#pragma once

#include <string>
#include <string_view>

#include "base/namespaces.h"

namespace troupe::base {

/// A time in seconds since 1970 as RFC 3339 writes it in UTC: "2026-11-21T11:34:00Z".
std::string utc_text(double wall_seconds);

/// Whether a text has that form. Such texts are ordered as their times are.
bool is_utc_text(std::string_view text) noexcept;

}  // namespace troupe::base
