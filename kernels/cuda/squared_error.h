#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/element.h"

namespace troupe::kernels::cuda {

/// The weighted squared error of a prediction.
///     row_sums[row] = sum over the row of c (x - target)^2,  loss = sum of row_sums
///
/// T:      float or simd::Bf16, of x alone; the rest is f32. A row's sum is f32, in a fixed order; the sum over the
///         rows is f64, by one block in a fixed order, and rounded to f32 once: two launches give the same bits.
/// Shapes: x and target [rows, channels], dense; c f32 [rows], or with of_elements [rows, channels]; row_sums f32
///         [rows], an output or scratch; loss one f32, zero without rows. Fastest where channels are a
///         multiple of 4 and all pointers are 16-byte aligned.
/// Stream: enqueues two kernels, never waits.
/// Errors: cudaErrorInvalidValue beyond 16,384 channels or 2^34 rows; else cudaGetLastError().
template <class T>
cudaError_t launch_squared_error_forward(std::int64_t rows, std::int64_t channels, const T* x, const float* target,
                                         const float* c, bool of_elements, float* row_sums, float* loss,
                                         cudaStream_t stream);

/// dx = round((c (x - target)) (2 dloss)), with dloss one f32 in device memory.
///
/// T:      as for the forward; dx is of type T and rounded once, to nearest even.
/// Shapes: as for the forward; dx [rows, channels], dense. dx may not overlap what is read.
/// Stream: enqueues one kernel, never waits: the host does not read dloss. Nothing without elements.
/// Errors: as for the forward.
template <class T>
cudaError_t launch_squared_error_backward(std::int64_t rows, std::int64_t channels, const T* x, const float* target,
                                          const float* c, bool of_elements, const float* dloss, T* dx,
                                          cudaStream_t stream);

}  // namespace troupe::kernels::cuda
