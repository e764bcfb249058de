#pragma once

namespace troupe {

/// Written into manifests and printed by --version.
inline constexpr const char* kTroupeVersion = "0.1.0";

}  // namespace troupe
