#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace troupe {

/// What a credit of the learner's feed says beside its position: which weights act in the item.
struct TrajectoryRequest {
  std::int64_t version = 0;  ///< committed steps behind the weights
  bool exact = false;  ///< those weights and no others; else those or newer ones, switched to between policy calls
};
/// 16 bytes: i64 version, i64 exact; little-endian.
std::vector<std::byte> encode(const TrajectoryRequest& request);
Result<TrajectoryRequest> decode_trajectory_request(std::span<const std::byte> bytes);

}  // namespace troupe
