#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/element.h"

namespace troupe::kernels::cuda {

/// Bytes of device scratch that launch_row_sum needs, 16-byte aligned: a part for each 64 rows.
/// One row of f32 a part.
std::int64_t row_sum_scratch_bytes(std::int64_t rows, std::int64_t channels);

/// Sum of all rows, column by column: the gradient of a bias.
///     sum[c] = x[0, c] + x[1, c] + ...
/// 64 rows are added in order, then these parts in order: two launches give the same bits. All sums are f32.
///
/// T:      float or simd::Bf16.
/// Shapes: x [rows, channels], dense; sum f32 [channels], written whole: zero without rows. scratch: as many bytes as
///         above. Fastest where channels are a multiple of 16 bytes and all pointers are so aligned.
/// Stream: enqueues a kernel over the rows and one over the parts, never waits; nothing without channels.
/// Errors: cudaErrorInvalidValue beyond 16,384 channels or 2^37 rows; else cudaGetLastError().
template <class T>
cudaError_t launch_row_sum(std::int64_t rows, std::int64_t channels, const T* x, float* sum, void* scratch,
                           cudaStream_t stream);

}  // namespace troupe::kernels::cuda
