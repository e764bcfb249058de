#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/device_runs.h"
#include "kernels/element.h"
#include "kernels/row_tables.h"

namespace troupe::kernels::cuda {

/// A residual with a gate: the gate is the table row of the row's run.
///     out = round(x + round(y * gate[run.table]))
///
/// T:      float or simd::Bf16. Computed in f32 and rounded twice, to nearest even, as a product and a sum of tensors
///         of type T would. For bf16 these are the bits of the CPU, which may fuse the two in f32.
/// Shapes: x, y and out [rows, channels], dense; gate one row of `channels` for each table row. Rows outside all runs
///         are left as they are. Fastest where channels and the table's stride are multiples of 16 bytes and all
///         pointers are so aligned.
/// Stream: enqueues one kernel, never waits; nothing without runs or channels. out may not overlap what is read.
/// Errors: cudaErrorInvalidValue beyond 16,384 channels or 2^31 - 1 runs; else cudaGetLastError().
template <class T>
cudaError_t launch_gated_residual_forward(const DeviceRuns& runs, std::int64_t channels, const T* x, const T* y,
                                          Table<T> gate, T* out, cudaStream_t stream);

/// Bytes of device scratch that the backward needs, 16-byte aligned: a part of the gate's gradient for each run.
/// One row of f32 a run.
std::int64_t gated_residual_backward_scratch_bytes(std::int64_t runs, std::int64_t channels);

/// The gradients of y and of the gate; that of x is dout itself and is not written.
///     dy = round(dout * gate[run.table]),  dgate[r] = sum of dout * y over the rows of the runs that use table row r
/// A run adds its rows in order, then each table row adds its runs in order: two launches give the same bits.
///
/// T:      as for the forward; dgate is f32.
/// Shapes: dout, y and dy [rows, channels], dense; dgate f32 [runs.table_rows, channels], dense, written whole: zero
///         for a table row without runs. scratch: as many bytes as above.
/// Stream: enqueues a kernel over the runs and one over the table rows, never waits. dy may not overlap what is read.
/// Errors: as for the forward.
template <class T>
cudaError_t launch_gated_residual_backward(const DeviceRuns& runs, std::int64_t channels, const T* dout, const T* y,
                                           Table<T> gate, T* dy, float* dgate, void* scratch, cudaStream_t stream);

}  // namespace troupe::kernels::cuda
