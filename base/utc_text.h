#pragma once

#include <string>

#include "base/namespaces.h"

namespace troupe::base {

/// A time in seconds since 1970 as RFC 3339 writes it in UTC: "2026-11-21T11:34:00Z".
std::string utc_text(double wall_seconds);

}  // namespace troupe::base
