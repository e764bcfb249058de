#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace troupe::kernels::cuda {

/// Rounds a sum of `count` f32, or f64, in f64 to one f32: sum = values[0] + values[1] + ...
/// One block adds in a fixed order, so two launches give the same bits; zero without values.
///
/// Shapes: values [count], sum one f32, all in device memory.
/// Stream: enqueues one kernel, never waits. Errors: cudaGetLastError().
cudaError_t launch_total(std::int64_t count, const float* values, float* sum, cudaStream_t stream);
cudaError_t launch_total(std::int64_t count, const double* values, float* sum, cudaStream_t stream);

/// Bytes of device scratch that launch_weighted_sum_forward needs, 8-byte aligned.
/// One f64 for each 4,096 elements.
std::int64_t weighted_sum_scratch_bytes(std::int64_t count);

/// sum = sum of c x, all f32.
/// Each product is rounded to f32, as a tensor of products would be; the sum is f64, in a fixed order, and rounded
/// once.
///
/// Shapes: x and c [count], dense; sum one f32, zero without elements; scratch as many bytes as above. Fastest where
///         x and c are 16-byte aligned.
/// Stream: enqueues two kernels, never waits.
/// Errors: cudaErrorInvalidValue for 2^43 elements or more; else cudaGetLastError().
cudaError_t launch_weighted_sum_forward(std::int64_t count, const float* x, const float* c, float* sum, void* scratch,
                                        cudaStream_t stream);

/// dx = c dsum, with dsum one f32 in device memory.
/// Shapes: c and dx f32 [count], dense; dx may not overlap what is read.
/// Stream: enqueues one kernel, never waits; nothing without elements. Errors: as for the forward, for 2^39 elements or
/// more.
cudaError_t launch_weighted_sum_backward(std::int64_t count, const float* c, const float* dsum, float* dx,
                                         cudaStream_t stream);

}  // namespace troupe::kernels::cuda
