#pragma once

#include <ATen/core/Tensor.h>

#include "base/namespaces.h"

namespace troupe::kernels {

/// The tanh form of GELU.
///     y = u/2 (1 + tanh(sqrt(2/pi) (u + 0.044715 u^3)))
///
/// Shapes: any, f32, bf16 or f64; arithmetic is f32 (f64 for f64). Returns y like u.
/// Grad:   u; keeps u.
/// CPU:    a vectorised kernel; other devices take at::gelu.
/// Source: arXiv:1606.08415 section 2.
/// The backward computes y' from u again: with t = tanh(...), y' = (1 + t) / 2 + u (1 - t^2) / 2 * d(...)/du. Errors:
/// throws c10::Error on another dtype.
at::Tensor gelu_tanh(const at::Tensor& u);

}  // namespace troupe::kernels
