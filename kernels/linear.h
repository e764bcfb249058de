#pragma once

#include <ATen/core/Tensor.h>

#include "base/namespaces.h"

namespace troupe::kernels {

/// A linear layer.
///     y = x W^T + b
///
/// Shapes: x [..., in], weight [out, in] with any strides, bias [out] or undefined; one dtype. Returns [..., out].
/// Grad:   x, weight and bias; keeps x and weight.
/// CPU:    products in tiles, in this process' form (kernels/product.h). In the widened form the result, with its bias,
///         is rounded once; in the native one the product and the sum. Other devices take at::linear.
/// Errors: throws c10::Error on a shape or dtype mismatch.
/// Any thread; shares its work among num_threads().
at::Tensor linear_product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

/// y = round(product + bias) for a product in the dtype that it was computed in (product_dtype); `y` may be it. Shapes
/// [rows, out], dense; bias [out].
void add_bias_out(const at::Tensor& y, const at::Tensor& product, const at::Tensor& bias);

/// sum [channels] of the rows of x [rows, channels], dense, in the dtype that x is added in: a bias' gradient.
void sum_rows_out(const at::Tensor& sum, const at::Tensor& x);

}  // namespace troupe::kernels
