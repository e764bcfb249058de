#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/element.h"

namespace troupe::kernels::cuda {

/// Rows of [samples, rows, channels] in device memory, of which the channels of a row alone are neighbours; strides in
/// elements.
template <class T>
struct BlockOfRows {
  T* data = nullptr;
  std::int64_t sample_stride = 0;
  std::int64_t row_stride = 0;
};

/// to[b, i, c] = from[b, i, c] in To, rounded to nearest even; zero without `from.data`.
///
/// To, From: float or simd::Bf16, in any pair. Between equal types the bits of all finite values stay.
/// Shapes: [samples, rows, channels]; to may not overlap from. Fastest where channels, strides and pointers are
///         multiples of 16 bytes.
/// Stream: enqueues one kernel, never waits; nothing without elements.
/// Errors: cudaErrorInvalidValue beyond 2^31 - 1 rows of all samples or 16,384 channels; else cudaGetLastError().
template <class To, class From>
cudaError_t launch_copy_rows(std::int64_t samples, std::int64_t rows, std::int64_t channels,
                             const BlockOfRows<const From>& from, const BlockOfRows<To>& to, cudaStream_t stream);

/// Row i of sample b becomes row key_rows[b, 1] - rows + i of `to`, which has one sample: the last of those that sample
/// b sees by key_rows (kernels/attention_plan.h), i64 [samples, 3] in device memory. The bits of all finite values
/// stay.
///
/// T: float or simd::Bf16. Shapes: from [samples, rows, channels]; rows of two samples in `to` are the same or
/// disjoint, and where they are the same so are their values. Fastest, stream and errors: as above.
template <class T>
cudaError_t launch_append_rows(std::int64_t samples, std::int64_t rows, std::int64_t channels,
                               const BlockOfRows<const T>& from, const BlockOfRows<T>& to, const std::int64_t* key_rows,
                               cudaStream_t stream);

}  // namespace troupe::kernels::cuda
