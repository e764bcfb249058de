#pragma once

#include <cstdlib>
#include <string>

namespace troupe::data {

/// A folder that the environment names, else one beside the sources.
inline std::string folder_of(const char* variable, const char* beside) {
  const char* set = std::getenv(variable);
  return set != nullptr && *set != 0 ? set : std::string(TROUPE_SOURCE_DIR) + beside;
}
inline std::string golden_data() { return folder_of("TROUPE_GOLDEN", "/../shared/golden") + "/data"; }
inline std::string shared_data() { return folder_of("TROUPE_SHARED_DATA", "/../shared/data"); }

}  // namespace troupe::data
