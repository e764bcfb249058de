#pragma once
#include <ATen/ATen.h>

#include <vector>

#include "base/namespaces.h"

namespace troupe::model {

/// Tensors in double precision, in which formulas are compared.
inline at::Tensor f64(const std::vector<double>& x) { return at::tensor(x, at::TensorOptions().dtype(at::kDouble)); }
inline at::Tensor f64(const std::vector<double>& x, at::IntArrayRef sizes) { return f64(x).reshape(sizes); }
inline at::Tensor random(at::IntArrayRef sizes) { return at::randn(sizes, at::TensorOptions().dtype(at::kDouble)); }

}  // namespace troupe::model
