#pragma once

#include <limits>

#include "base/namespaces.h"

namespace troupe::configs {

/// Lower bound of a number that must be greater than zero: the smallest positive double. Errors spell it "> 0".
inline constexpr double kAboveZero = std::numeric_limits<double>::denorm_min();
/// No upper bound.
inline constexpr double kUnbounded = std::numeric_limits<double>::infinity();

}  // namespace troupe::configs
