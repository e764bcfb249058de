#pragma once

#include <cmath>
#include <cstdint>

namespace troupe::model {

/// For counts of FLOPs, whose products would leave 64 bits.
inline double to_double(std::int64_t n) { return static_cast<double>(n); }

/// 1 / sqrt(n): the scale of initial weights that n terms are summed with.
inline double inverse_root(std::int64_t n) { return 1.0 / std::sqrt(to_double(n)); }

}  // namespace troupe::model
