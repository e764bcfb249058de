#pragma once

#include "base/namespaces.h"

namespace troupe::base {

/// Written into manifests and printed by --version.
inline constexpr const char* kTroupeVersion = "0.1.0";

}  // namespace troupe::base
