#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "base/namespaces.h"
#include "kernels/row_kernels.h"
#include "kernels/row_runs.h"
#include "kernels/threads.h"

namespace troupe::kernels {

// What the operators' CPU paths share: element types and pointers.

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
/// Undefined becomes nullopt; the backward turns it into an undefined gradient again.
inline std::optional<at::Tensor> optional(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional<at::Tensor>(tensor) : std::nullopt;
}

/// The first element of a tensor whose dtype is T's; null for an undefined or empty tensor.
template <class T>
T* data(const at::Tensor& tensor) {
  return static_cast<T*>(tensor.data_ptr());
}

/// Runs of rows of x that read one row of `factor`: x [B, T, C], factor [B or 1, T or 1, C]; table_row i32 [T], or
/// undefined, names the row of `factor` for each of x's (kernels/row_runs.h). Grouped, one load of a factor serves
/// many rows.
inline std::vector<RowRun> runs_of(const at::Tensor& x, const at::Tensor& factor, const at::Tensor& table_row) {
  return row_runs(x.size(0), x.size(1), table_row.defined() ? kernels::data<std::int32_t>(table_row) : nullptr,
                  factor.size(1), factor.size(0) > 1);
}

}  // namespace troupe::kernels
