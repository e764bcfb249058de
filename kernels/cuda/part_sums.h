#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace troupe::kernels::cuda {

/// The second stage of sums over rows: adds parts, one row of f32 each, in their order.
///     out[r, c] = parts[first[r], c] + parts[first[r] + 1, c] + ... + parts[first[r + 1] - 1, c]
/// A sum without parts is zero. Each sum starts at zero and adds one part after the other, on every GPU.
///
/// Shapes: parts f32 [num_parts, channels]; first i32 [table_rows + 1], ascending, or null: one row that adds all of
///         them; out f32 [table_rows, channels], written whole. With `second_out` not null there are two such tables:
///         its parts f32 [num_parts, channels] lie behind those of `out`. All in device memory, dense.
/// Stream: enqueues one kernel, never waits; nothing without table rows or channels.
/// Errors: cudaErrorInvalidValue beyond 16,384 channels or 2^31 - 1 table rows; else cudaGetLastError().
cudaError_t launch_part_sums(const float* parts, std::int64_t num_parts, const std::int32_t* first,
                             std::int64_t table_rows, std::int64_t channels, float* out, float* second_out,
                             cudaStream_t stream);

}  // namespace troupe::kernels::cuda
