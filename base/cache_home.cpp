#include "base/cache_home.h"

#include <cstdlib>

namespace troupe::base {

std::string cache_home() {
  const char* named = std::getenv("XDG_CACHE_HOME");
  if (named != nullptr && named[0] == '/') return named;  // the specification ignores relative paths
  const char* home = std::getenv("HOME");
  return home != nullptr && home[0] == '/' ? std::string(home) + "/.cache" : std::string();
}

}  // namespace troupe::base
