#pragma once

#include <ATen/core/Tensor.h>

#include "base/namespaces.h"

namespace troupe::kernels {

/// Adds a layer's output, gated by a row of a small table, to the residual stream.
///     out[b,n,c] = round(x[b,n,c] + round(y[b,n,c] * gate[b,r,c])),   r = table_row[n]
///
/// Shapes: x_BNC and y_BNC of one dtype (f32, bf16 or f64); gate_BRC, converted to it, first axis 1 or B;
///         table_row_N as in modulated_layer_norm. Returns a tensor like x.
/// Grad:   x, y and gate; keeps y and gate. Sums over tokens have one order for any number of threads.
/// CPU:    a fused kernel; other devices take a composition of ATen's operators.
/// Errors: throws c10::Error on a shape or dtype mismatch.
/// Source: the gate of adaLN-Zero, arXiv:2212.09748 section 3.2, with one gate for each token's timestep.
/// round() is to x's dtype, as a product and a sum of two operators would round.
at::Tensor gated_residual(const at::Tensor& x_BNC, const at::Tensor& y_BNC, const at::Tensor& gate_BRC,
                          const at::Tensor& table_row_N);

}  // namespace troupe::kernels
