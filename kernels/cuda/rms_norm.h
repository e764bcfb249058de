#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/element.h"
#include "kernels/row_tables.h"

namespace troupe::kernels::cuda {

/// Root-mean-square norm over channels with a learned gain, then the rotation.
///     y = rotate(round(round(x * rstd) * gain)),  rstd = 1 / sqrt(mean(x^2) + eps)
///
/// T:      float or simd::Bf16. All is computed in f32; `round` rounds to T, to nearest even, and so is y in the end:
///         the rounding points of the CPU. Only the order of the sum of squares differs from it.
/// Shapes: x [rows, channels], rows x_stride elements apart; gain [channels]; y [rows, channels], dense; rstd f32
///         [rows]. Fastest where channels, head_dim and x_stride are multiples of 16 bytes and all pointers are so
///         aligned.
/// Stream: enqueues one kernel, never waits; nothing without rows or channels. y may not overlap what is read.
/// Errors: cudaErrorInvalidValue beyond 16,384 channels or 2^31 - 1 rows, and for a rotation with an odd head_dim,
///         parts of heads or no tokens; else cudaGetLastError().
template <class T>
cudaError_t launch_rms_norm_forward(std::int64_t rows, std::int64_t channels, const T* x, std::int64_t x_stride,
                                    const T* gain, double eps, const Rotation<T>& rotation, T* y, float* rstd,
                                    cudaStream_t stream);

/// Bytes of device scratch that the backward needs, 16-byte aligned: a part of the gain's gradient for each 32 rows.
/// One row of f32 a part.
std::int64_t rms_norm_backward_scratch_bytes(std::int64_t rows, std::int64_t channels);

/// The gradients, from x and the forward's rstd. d is dy rotated back, in f32.
///     normed = x * rstd,  g = d * gain,  dx = (g - normed * mean_c(g * normed)) * rstd
///     dgain = sum over the rows of d * normed
/// 32 rows are added in order, then these parts in order: two launches give the same bits.
///
/// T:      as for the forward; dx is rounded once.
/// Shapes: dy [rows, channels], dense; x and dx [rows, channels], rows x_stride and dx_stride elements apart; dgain f32
///         [channels], written whole: zero without rows. scratch: as many bytes as above.
/// Stream: enqueues a kernel over the rows and one over the parts, never waits; nothing without channels. dx may not
///         overlap what is read.
/// Errors: as for the forward.
template <class T>
cudaError_t launch_rms_norm_backward(std::int64_t rows, std::int64_t channels, const T* dy, const T* x,
                                     std::int64_t x_stride, const T* gain, const float* rstd,
                                     const Rotation<T>& rotation, T* dx, std::int64_t dx_stride, float* dgain,
                                     void* scratch, cudaStream_t stream);

}  // namespace troupe::kernels::cuda
