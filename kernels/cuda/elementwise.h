#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/element.h"

namespace troupe::kernels::cuda {

// Sums, products and conversions of dense tensors, element by element: `count` elements in device memory. T is float or
// simd::Bf16; all is computed in f32 and rounded to T, to nearest even, where `round` says so: the same bits as on the
// CPU. Each launcher enqueues one kernel and never waits; nothing without elements. Fastest where pointers are 16-byte
// aligned. Errors: cudaErrorInvalidValue for more blocks than a grid takes (2^39 elements or more); else
// cudaGetLastError().

/// out = round(a + b).
/// out may not overlap a or b.
template <class T>
cudaError_t launch_add(std::int64_t count, const T* a, const T* b, T* out, cudaStream_t stream);

/// out = round(a + round(b * scale)), with the scale as an f32.
/// out may not overlap a or b.
template <class T>
cudaError_t launch_add_scaled(std::int64_t count, const T* a, const T* b, double scale, T* out, cudaStream_t stream);

/// out = round(x * scale), with the scale as an f32.
/// out may not overlap x.
template <class T>
cudaError_t launch_scale(std::int64_t count, const T* x, double scale, T* out, cudaStream_t stream);

/// sum = round(sum + part), in place.
/// part may not overlap sum.
template <class T>
cudaError_t launch_add_to(std::int64_t count, T* sum, const T* part, cudaStream_t stream);

/// to = from in the other type, rounded from float to simd::Bf16 and exact the other way: <simd::Bf16, float> and
/// <float, simd::Bf16>. to may not overlap from.
template <class To, class From>
cudaError_t launch_convert(std::int64_t count, const From* from, To* to, cudaStream_t stream);

/// y[row, c] = round(x[row, c] + bias[c]): <float, float>, <simd::Bf16, float> and <simd::Bf16, simd::Bf16> for T and
/// the type S of x, a product that is kept in f32 or in T.
///
/// Shapes: x and y [rows, channels], dense; bias [channels]. y may be x itself where S is T; else they may not overlap.
/// Errors: cudaErrorInvalidValue also beyond 16,384 channels.
template <class T, class S>
cudaError_t launch_add_bias(std::int64_t rows, std::int64_t channels, const S* x, const T* bias, T* y,
                            cudaStream_t stream);

}  // namespace troupe::kernels::cuda
