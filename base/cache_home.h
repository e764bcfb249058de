#pragma once

#include <string>

namespace troupe::base {

/// The folder of this user's caches: $XDG_CACHE_HOME, where it is an absolute path, else ~/.cache. Empty where neither
/// is known. Source: XDG Base Directory Specification 0.8.
std::string cache_home();

}  // namespace troupe::base
