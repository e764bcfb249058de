#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace troupe::workers {

/// What a credit of the learner's feed says beside its position: which weights act in the item.
struct TrajectoryRequest {
  /// Committed steps behind the weights.
  std::int64_t version = 0;
  /// Those weights and no others; else those or newer ones, switched to between policy calls.
  bool exact = false;
};
/// 16 bytes: i64 version, i64 exact (0 or 1); little-endian.
std::vector<std::byte> encode(const TrajectoryRequest& request);
/// Errors: invalid_argument (another size, a negative version, `exact` neither 0 nor 1).
Result<TrajectoryRequest> decode_trajectory_request(std::span<const std::byte> bytes);

}  // namespace troupe::workers
