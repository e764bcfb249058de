#pragma once

#include <ATen/core/Tensor.h>

#include "base/namespaces.h"

namespace troupe::kernels {

/// Root-mean-square normalisation over channels with a learned gain, then, with tables, rotation of interleaved pairs.
///     v[c] = round(round(x[c] / sqrt(mean_c(x^2) + eps)) * gain[c])
///     y[2j], y[2j+1] = v[2j] cos_j - v[2j+1] sin_j, v[2j] sin_j + v[2j+1] cos_j      j counted within each head
///
/// Shapes: x_BNC, f32, bf16 or f64; gain_C like x; cos and sin [N, head_dim/2] in f32 (f64 for f64), both undefined for
///         no rotation. C is a multiple of head_dim. Returns y like x, heads not split.
///         Arithmetic is f32 (f64 for f64); round() is to x's dtype, where the reference rounds.
/// Grad:   x and gain; keeps x and one number per token. Sums over tokens have one order for any number of threads.
/// CPU:    a fused kernel; other devices take a composition of ATen's operators.
/// Errors: throws c10::Error on a shape or dtype mismatch.
/// Source: arXiv:1910.07467 eq. 4; the rotation of pairs arXiv:2104.09864 eq. 34, with Wan's angles for frame, row,
/// column.
/// Row n of cos and sin belongs to token n of every sample.
at::Tensor rms_norm_rotated(const at::Tensor& x_BNC, const at::Tensor& gain_C, double eps, const at::Tensor& cos,
                            const at::Tensor& sin);

}  // namespace troupe::kernels
