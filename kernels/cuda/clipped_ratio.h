#pragma once

#include <cuda_runtime_api.h>

#include "kernels/clipped_ratio.h"

namespace troupe::kernels::cuda {

/// The clipped objective of kernels/clipped_ratio.h: losses of entries, and their sum.
///
/// T:      float or simd::Bf16, of v alone; the rest is f32. An entry's sum is f32, in a fixed order; the sum over the
///         entries is f64, by one block in a fixed order, and rounded to f32 once: two launches give the same bits.
/// Shapes: v [blocks, actions, channels], dense; terms as there; losses f32 [N,E], an output or scratch; loss one f32,
///         zero without entries.
/// Stream: enqueues two kernels, never waits.
/// Errors: cudaErrorInvalidValue beyond 2^34 entries; else cudaGetLastError().
template <class T>
cudaError_t launch_clipped_ratio_forward(const RatioShape& shape, const RatioClip& clip, const T* v,
                                         const RatioTerms<float>& terms, float* losses, float* loss,
                                         cudaStream_t stream);

/// dv = dloss d(loss)/dv, with dloss one f32 in device memory.
///
/// T:      as for the forward; dv is of type T and rounded once, to nearest even.
/// Shapes: as for the forward; dv like v, all of it is written. dv may not overlap what is read.
/// Stream: enqueues a fill and a kernel, never waits: the host does not read dloss.
/// Errors: as for the forward, and those of cudaMemsetAsync.
template <class T>
cudaError_t launch_clipped_ratio_backward(const RatioShape& shape, const RatioClip& clip, const T* v,
                                          const RatioTerms<float>& terms, const float* dloss, T* dv,
                                          cudaStream_t stream);

}  // namespace troupe::kernels::cuda
