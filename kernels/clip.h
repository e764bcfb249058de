#pragma once

#include <cmath>
#include <cstdint>

#include "base/host_device.h"
#include "base/namespaces.h"

namespace troupe::kernels {

// How gradients are clipped: the same bits on the host and on a GPU.

/// The number of a group is its place in an array of ClipGroup; this is none.
inline constexpr std::int32_t kNoGroup = -1;

/// What an update does with one group of units.
struct ClipGroup {
  /// largest norm; 0: off
  double limit = 0;
  /// number of the first of the groups that are clipped together, by the norm over those that are updated
  std::int32_t clip_set = 0;
  /// 0: the update leaves it alone
  std::int32_t is_updated = 0;
};

/// Norm of a gradient whose elements' squares sum to `squares`, rounded to f32: sums in f64 differ in their last bits
/// with the number of ranks.
TROUPE_HOST_DEVICE double rounded_norm(double squares) {
  return static_cast<double>(static_cast<float>(std::sqrt(squares)));
}

/// Factor for a gradient of that norm: min(1, limit / (norm + 1e-6)); 1 when limit is 0 (off).
TROUPE_HOST_DEVICE float clip_factor(double norm, double limit) {
  if (limit <= 0) return 1.0F;
  const double factor = limit / (norm + 1e-6);
  return factor < 1.0 ? static_cast<float>(factor) : 1.0F;
}

/// Factor of group g, from the sums of squares of all groups; 1 where it is not updated.
TROUPE_HOST_DEVICE float clip_factor_of(std::int32_t g, const ClipGroup* groups, std::int32_t count,
                                        const double* squares) {
  if (groups[g].is_updated == 0) return 1.0F;
  double sum = 0;
  for (std::int32_t k = 0; k < count; ++k) {
    if (groups[k].is_updated != 0 && groups[k].clip_set == groups[g].clip_set) sum += squares[k];
  }
  return clip_factor(rounded_norm(sum), groups[g].limit);
}

}  // namespace troupe::kernels
