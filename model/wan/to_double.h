#pragma once

#include <cstdint>

namespace troupe::model {

/// For counts of FLOPs, whose products would leave 64 bits.
inline double to_double(std::int64_t n) { return static_cast<double>(n); }

}  // namespace troupe::model
