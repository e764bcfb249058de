#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/element.h"

namespace troupe::kernels::cuda {

/// One of the n modulations of a block: a learned row plus what the conditioning says, for each table row.
///     out[r, c] = round(base[c] + rows[r, c]);  with plus_one: out = round(out + 1)
///
/// T:      float or simd::Bf16. Computed in f32 and rounded to nearest even, twice with plus_one: the same bits as on
///         the CPU.
/// Shapes: base [channels], row i of [n, channels] for modulation i; rows [table_rows, channels], each row_stride
///         elements behind the one before: modulation i of [B, R, n, d] begins i * d elements behind the whole and has
///         row_stride n * d, the one table of [B, R, d] has d; out [table_rows, channels], dense. Fastest where
///         channels and row_stride are multiples of 16 bytes and all pointers are so aligned.
/// Stream: enqueues one kernel, never waits; nothing without table rows or channels. out may not overlap what is read.
/// Errors: cudaErrorInvalidValue beyond 16,384 channels or 2^33 table rows; else cudaGetLastError().
template <class T>
cudaError_t launch_modulation_forward(std::int64_t table_rows, std::int64_t channels, const T* base, const T* rows,
                                      std::int64_t row_stride, bool plus_one, T* out, cudaStream_t stream);

/// Bytes of device scratch that the backward needs for base's gradient, 16-byte aligned.
/// A part for each 64 table rows.
std::int64_t modulation_backward_scratch_bytes(std::int64_t table_rows, std::int64_t channels);

/// The gradients of one modulation, both f32 for either type of the forward.
///     d_base[c] = sum over r of d_table[r, c], written;  d_rows[r, c] += d_table[r, c]
/// 64 table rows are added in order, then these parts in order: two launches give the same bits.
///
/// Shapes: d_table f32 [table_rows, channels], dense, or null where no gradient flows: d_base is then zero and d_rows
///         stays as it is. d_base f32 [channels] or null: not wanted. d_rows f32, rows d_rows_stride elements apart as
///         above, or null. scratch: as many bytes as above, may be null without d_base.
/// Stream: enqueues up to three kernels, or a fill; never waits; nothing without channels. d_table may not overlap the
///         others.
/// Errors: as for the forward.
cudaError_t launch_modulation_backward(std::int64_t table_rows, std::int64_t channels, const float* d_table,
                                       float* d_base, float* d_rows, std::int64_t d_rows_stride, void* scratch,
                                       cudaStream_t stream);

}  // namespace troupe::kernels::cuda
