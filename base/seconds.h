#pragma once

#include <chrono>

#include "base/namespaces.h"

namespace troupe::base {

/// A span of time in seconds, whole or not, as configurations and reports give it.
using Seconds = std::chrono::duration<double>;

/// Whole milliseconds; fractions of one are cut.
constexpr std::chrono::milliseconds to_milliseconds(Seconds span) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(span);
}

}  // namespace troupe::base
