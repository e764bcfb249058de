#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/clip.h"

namespace troupe::kernels::cuda {

/// Groups that one decision takes.
inline constexpr std::int64_t kMostClipGroups = 64;

/// Decides on a step where the gradients lie: whether it is skipped, and by how much each group is clipped
/// (kernels/clip.h). Squares of a group are those of its units, added up unit by unit, then rank by rank. A step is
/// skipped when the norm over all groups, rounded to f32, or any rank's losses are not finite.
///
/// Shapes: squares f64 [ranks, units + 1] of every rank: the sum of squares of its part of each unit's gradient, and
///         behind them that of its losses; group_of i32 [units], kNoGroup for one without a gradient; groups and scales
///         (f32) [num_groups]; skip, one i32. All in device memory.
/// The first `sharing_ranks` hold one copy of the gradients between them; those behind them hold the same again.
/// Bits: those of the host form.
/// Stream: enqueues one kernel; never waits. Errors: cudaErrorInvalidValue beyond kMostClipGroups groups; else
/// cudaGetLastError().
cudaError_t launch_step_decision(const double* squares, std::int64_t ranks, std::int64_t sharing_ranks,
                                 std::int64_t units, const std::int32_t* group_of, const ClipGroup* groups,
                                 std::int64_t num_groups, float* scales, std::int32_t* skip, cudaStream_t stream);

}  // namespace troupe::kernels::cuda
