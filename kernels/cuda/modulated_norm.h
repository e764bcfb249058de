#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/device_runs.h"
#include "kernels/element.h"
#include "kernels/row_tables.h"

namespace troupe::kernels::cuda {

/// Layer norm over channels, scaled and shifted by the table row of the row's run.
///     y = (x - mean) * rstd * factor[run.table] + shift[run.table],  rstd = 1 / sqrt(mean((x - mean)^2) + eps)
///
/// T:      float or simd::Bf16. All is computed in f32; y is rounded once, to nearest even. The mean is taken first and
///         the deviations from it are squared, as on the CPU; only the order of those two sums differs.
/// Shapes: x and y [rows, channels], dense; factor and shift one row of `channels` for each table row, at their own
///         strides; stats f32 [rows, 2], {mean, rstd} of each row that is in a run. Rows outside all runs are left as
///         they are. Fastest where channels and strides are multiples of 16 bytes and all pointers are so aligned.
/// Stream: enqueues one kernel, never waits; nothing without runs or channels. y may not overlap what is read.
/// Errors: cudaErrorInvalidValue beyond 16,384 channels or 2^31 - 1 runs; else cudaGetLastError().
template <class T>
cudaError_t launch_modulated_norm_forward(const DeviceRuns& runs, std::int64_t channels, const T* x, Table<T> factor,
                                          Table<T> shift, double eps, T* y, float* stats, cudaStream_t stream);

/// Bytes of device scratch that the backward needs, 16-byte aligned: a part of each table gradient for each run.
/// Two rows of f32 a run.
std::int64_t modulated_norm_backward_scratch_bytes(std::int64_t runs, std::int64_t channels);

/// The gradients, from x and the forward's stats.
///     normed = (x - mean) * rstd,  g = dy * factor[run.table]
///     dx = (g - mean_c(g) - normed * mean_c(g * normed)) * rstd
///     dshift[r] = sum of dy, dfactor[r] = sum of dy * normed, over the rows of the runs that use table row r
/// A run adds its rows in order, then each table row adds its runs in order: two launches give the same bits.
///
/// T:      as for the forward; dx is rounded once.
/// Shapes: dy, x and dx [rows, channels], dense; dfactor and dshift f32 [runs.table_rows, channels], dense, written
///         whole: zero for a table row without runs. scratch: as many bytes as above; its content means nothing before
///         and after.
/// Stream: enqueues a kernel over the runs and one over the table rows, never waits. dx may not overlap what is read.
/// Errors: as for the forward.
template <class T>
cudaError_t launch_modulated_norm_backward(const DeviceRuns& runs, std::int64_t channels, const T* dy, const T* x,
                                           Table<T> factor, const float* stats, T* dx, float* dfactor, float* dshift,
                                           void* scratch, cudaStream_t stream);

}  // namespace troupe::kernels::cuda
