// Shapes of the operators that LibTorch knows on the meta device from Python only, as far as the DiT's training step
// calls them there (step_products.h). A program that links this file has them.
#include <ATen/ATen.h>
#include <torch/library.h>

#include <array>
#include <optional>
#include <tuple>

namespace troupe::bench {
namespace {

using ThreeTensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using OptionalTensor = std::optional<at::Tensor>;

at::Tensor relu(const at::Tensor& x) { return at::empty_like(x); }

at::Tensor safe_softmax(const at::Tensor& x, std::int64_t, std::optional<at::ScalarType>) { return at::empty_like(x); }

at::Tensor index_select(const at::Tensor& x, std::int64_t axis, const at::Tensor& index) {
  auto shape = x.sizes().vec();
  shape[static_cast<std::size_t>(axis < 0 ? axis + x.dim() : axis)] = index.numel();
  return at::empty(shape, x.options());
}

/// Over the last axis, as its backward below.
ThreeTensors layer_norm(const at::Tensor& x, c10::SymIntArrayRef, const OptionalTensor&, const OptionalTensor&,
                        double) {
  auto rows = x.sizes().vec();
  rows.back() = 1;
  return {at::empty_like(x), at::empty(rows, x.options()), at::empty(rows, x.options())};
}

ThreeTensors layer_norm_backward(const at::Tensor&, const at::Tensor& x, c10::SymIntArrayRef, const at::Tensor&,
                                 const at::Tensor&, const OptionalTensor&, const OptionalTensor&, std::array<bool, 3>) {
  return {at::empty_like(x), at::empty({x.size(-1)}, x.options()), at::empty({x.size(-1)}, x.options())};
}

TORCH_LIBRARY_IMPL(aten, Meta, m) {
  m.impl("relu", relu);
  m.impl("_safe_softmax", safe_softmax);
  m.impl("index_select", index_select);
  m.impl("native_layer_norm", layer_norm);
  m.impl("native_layer_norm_backward", layer_norm_backward);
}

}  // namespace
}  // namespace troupe::bench
