#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/activation.h"
#include "kernels/element.h"

namespace troupe::kernels::cuda {

/// y = a(u), element by element.
///     gelu_tanh: u s(2 z),  z = sqrt(2 / pi) (u + 0.044715 u^3),  s(x) = 1 / (1 + e^-x)
///     gelu_erf:  u / 2 (1 + erf(u / sqrt(2)))      silu: u s(u)      relu: u where u > 0, else 0; a NaN stays one
///
/// T:      float or simd::Bf16. Computed in f32 with the accurate functions, within a few ulp of the CPU, and rounded
///         once, to nearest even.
/// Shapes: u and y `count` elements, dense. Fastest where both are 16-byte aligned.
/// Stream: enqueues one kernel, never waits; nothing without elements. y may not overlap u.
/// Errors: cudaErrorInvalidValue for more elements than a grid has threads (2^39 or more) or for no activation of the
///         list; else cudaGetLastError().
template <class T>
cudaError_t launch_activation_forward(Activation activation, std::int64_t count, const T* u, T* y, cudaStream_t stream);

/// du = dy a'(u), from u again: nothing of the forward is kept.
///     gelu_tanh: s + u slope s (1 - s),  s of 2 z and slope = d(2 z)/du      gelu_erf: Phi(u) + u phi(u)
///     silu:      s (1 + u (1 - s)),  s of u                                 relu: dy where u > 0, else 0
///
/// As for the forward; du may not overlap dy or u.
template <class T>
cudaError_t launch_activation_backward(Activation activation, std::int64_t count, const T* dy, const T* u, T* du,
                                       cudaStream_t stream);

}  // namespace troupe::kernels::cuda
