#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <cstddef>

#include "base/namespaces.h"

namespace troupe::base {

/// How many descriptors this process may have open (RLIMIT_NOFILE).
inline std::size_t descriptor_limit() noexcept {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<std::size_t>(limit.rlim_cur) : 1024;
}

/// Raises the limit to `wanted` as far as the hard limit goes; never lowers it. Returns what holds then.
inline std::size_t raise_descriptor_limit(std::size_t wanted) noexcept {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < wanted) {
    limit.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
    ::setrlimit(RLIMIT_NOFILE, &limit);  // a refusal leaves the limit, which the caller is told
  }
  return descriptor_limit();
}

}  // namespace troupe::base
