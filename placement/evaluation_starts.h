#pragma once

#include <cstdint>

namespace troupe::placement {

/// Processes that play one evaluation before the rest of it is lost (docs/evaluation.md#evaluations-of-a-run).
inline constexpr std::int64_t kMostEvaluationStarts = 6;

}  // namespace troupe::placement
