#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <optional>

#include "kernels/row_kernels.h"

namespace troupe::kernels {

// What the operators' CPU paths share: element types, pointers and the number of threads.

/// Threads that a kernel may use here: ATen's, or one inside a parallel region.
inline int num_threads() { return at::in_parallel_region() ? 1 : at::get_num_threads(); }

/// f32 for f32 and bf16, f64 for f64.
inline at::ScalarType accumulate_dtype(at::ScalarType dtype) { return dtype == at::kDouble ? at::kDouble : at::kFloat; }

/// Calls f(T{}) with T the element type of the kernels; any dtype but f32, f64 and bf16 throws c10::Error.
template <class F>
void dispatch(const char* op, at::ScalarType dtype, const F& f) {
  if (dtype == at::kFloat) return f(float{});
  if (dtype == at::kBFloat16) return f(simd::Bf16{});
  TORCH_CHECK(dtype == at::kDouble, op, ": dtype ", dtype, ", wants float, bfloat16 or double");
  f(double{});
}

/// An argument of an autograd Function that may be missing; undefined tensors are not allowed there.
inline std::optional<at::Tensor> optional(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional<at::Tensor>(tensor) : std::nullopt;
}

template <class T>
T* data(const at::Tensor& tensor) {
  return static_cast<T*>(tensor.data_ptr());
}

}  // namespace troupe::kernels
