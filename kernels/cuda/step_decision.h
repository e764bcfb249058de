#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/clip.h"

namespace troupe::kernels::cuda {

/// Forms the sums of squares that a step is judged by where the gradients lie, and whether the step is skipped. The sum
/// of a group is that of its units, added up unit by unit, then rank by rank. A step is skipped when the norm over all
/// groups, rounded to f32, or any rank's losses are not finite.
///
/// Shapes: squares f64 [ranks, units + 1] of every rank: the sum of squares of its part of each unit's gradient, and
///         behind them that of its losses; group_of i32 [units], kNoGroup for one without a gradient; sums f64
///         [num_groups]; skip, one i32. All in device memory.
/// The first `sharing_ranks` hold one copy of the gradients between them; those behind them hold the same again.
/// Stream: enqueues one kernel; never waits. Errors: cudaGetLastError().
cudaError_t launch_step_norms(const double* squares, std::int64_t ranks, std::int64_t sharing_ranks, std::int64_t units,
                              const std::int32_t* group_of, std::int64_t num_groups, double* sums, std::int32_t* skip,
                              cudaStream_t stream);

/// The clip factor of each group (clip_factor_of).
///
/// Shapes: sums f64, groups and scales (f32) [num_groups], in device memory.
/// Bits: those of the host.
/// Stream: enqueues one kernel; never waits. Errors: cudaGetLastError().
cudaError_t launch_clip_scales(const double* sums, const ClipGroup* groups, std::int64_t num_groups, float* scales,
                               cudaStream_t stream);

}  // namespace troupe::kernels::cuda
