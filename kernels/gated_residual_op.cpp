#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/dispatch.h"
#include "kernels/gated_residual.h"
#include "kernels/row_kernels.h"

namespace troupe::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct GatedResidual : torch::autograd::Function<GatedResidual> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& y, const at::Tensor& gate,
                            const std::optional<at::Tensor>& optional_row) {
    const auto table_row = optional_row.value_or(at::Tensor());
    auto out = at::empty_like(x);
    kernels::dispatch("gated_residual", x.scalar_type(), [&]<class T>(T) {
      cpu::gated_residual_forward<T>(runs_of(y, gate, table_row), x.size(2), kernels::data<T>(x), kernels::data<T>(y),
                                     {kernels::data<T>(gate), x.size(2)}, kernels::data<T>(out),
                                     threads_for(y.numel()));
    });
    ctx->save_for_backward({y, gate, table_row});
    return out;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const auto &y = saved[0], &gate = saved[1], &table_row = saved[2];
    const auto dout = gradients[0].contiguous();
    const auto dy = at::empty_like(y);
    const auto dgate = at::empty(gate.sizes(), y.options().dtype(kernels::accumulate_dtype(y.scalar_type())));
    kernels::dispatch("gated_residual", y.scalar_type(), [&]<class T>(T) {
      cpu::gated_residual_backward<T>(runs_of(y, gate, table_row), y.size(2), gate.size(0) * gate.size(1),
                                      kernels::data<T>(dout), kernels::data<T>(y), {kernels::data<T>(gate), y.size(2)},
                                      kernels::data<T>(dy), kernels::data<cpu::Acc<T>>(dgate), threads_for(y.numel()));
    });
    return {dout, dy, dgate.to(gate.scalar_type()), at::Tensor()};
  }
};

}  // namespace

at::Tensor gated_residual(const at::Tensor& x_BNC, const at::Tensor& y_BNC, const at::Tensor& gate_BRC,
                          const at::Tensor& table_row_N) {
  TORCH_CHECK(x_BNC.dim() == 3 && x_BNC.sizes() == y_BNC.sizes() && x_BNC.scalar_type() == y_BNC.scalar_type() &&
                  gate_BRC.dim() == 3 && gate_BRC.size(2) == x_BNC.size(2) &&
                  (gate_BRC.size(0) == 1 || gate_BRC.size(0) == x_BNC.size(0)),
              "gated_residual: x ", x_BNC.sizes(), " ", x_BNC.scalar_type(), ", y ", y_BNC.sizes(), " ",
              y_BNC.scalar_type(), ", gate ", gate_BRC.sizes());
  TORCH_CHECK(!table_row_N.defined() || (table_row_N.dim() == 1 && table_row_N.size(0) == x_BNC.size(1) &&
                                         table_row_N.scalar_type() == at::kInt && table_row_N.is_contiguous()),
              "gated_residual: the table rows of ", x_BNC.size(1), " tokens are not one i32 each");
  const auto gate = gate_BRC.to(x_BNC.scalar_type());
  if (!x_BNC.is_cpu()) {
    return x_BNC + y_BNC * (table_row_N.defined() ? gate.index_select(1, table_row_N) : gate.narrow(1, 0, 1));
  }
  return GatedResidual::apply(x_BNC.contiguous(), y_BNC.contiguous(), gate.contiguous(),
                              kernels::optional(table_row_N));
}

}  // namespace troupe::kernels
