#pragma once

#include <ATen/core/Tensor.h>

#include "base/namespaces.h"

namespace troupe::kernels {

/// Layer normalisation over channels without parameters, then scaled and shifted by a row of a small table.
///     y[b,n,c] = (x[b,n,c] - mean) / sqrt(var + eps) * factor[b,r,c] + shift[b,r,c],   r = table_row[n]
///
/// Shapes: x_BNC, f32, bf16 or f64; factor_BRC and shift_BRC, converted to x's dtype, their first axis 1 or B.
///         table_row_N: i32 on x's device, each in [0, R); undefined: row 0. Returns y like x.
///         Statistics and arithmetic are f32 (f64 for f64), rounded once at the end.
/// Grad:   x, factor and shift; keeps x and two numbers per token. Sums over tokens have one order for any number of
///         threads.
/// CPU:    a fused kernel; other devices take a composition of ATen's operators.
/// Errors: throws c10::Error on a shape or dtype mismatch.
/// Source: arXiv:1607.06450 eq. 3; the modulation is adaLN of arXiv:2212.09748 section 3.2 with factor = 1 + scale.
/// With
///         R = 1 it is the affine layer norm.
/// var is the biased variance (divided by the number of channels); eps is added before the root.
at::Tensor modulated_layer_norm(const at::Tensor& x_BNC, const at::Tensor& factor_BRC, const at::Tensor& shift_BRC,
                                const at::Tensor& table_row_N, double eps);

}  // namespace troupe::kernels
