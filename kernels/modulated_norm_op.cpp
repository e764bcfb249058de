#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/dispatch.h"
#include "kernels/modulated_norm.h"
#include "kernels/row_kernels.h"

namespace troupe::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct ModulatedNorm : torch::autograd::Function<ModulatedNorm> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& factor,
                            const at::Tensor& shift, const std::optional<at::Tensor>& optional_row, double eps) {
    const auto table_row = optional_row.value_or(at::Tensor());
    const auto channels = x.size(2);
    auto y = at::empty_like(x);
    auto stats = at::empty({x.size(0) * x.size(1), 2}, x.options().dtype(kernels::accumulate_dtype(x.scalar_type())));
    kernels::dispatch("modulated_layer_norm", x.scalar_type(), [&]<class T>(T) {
      cpu::modulated_norm_forward<T>(runs_of(x, factor, table_row), channels, kernels::data<T>(x),
                                     {kernels::data<T>(factor), channels}, {kernels::data<T>(shift), channels}, eps,
                                     kernels::data<T>(y), kernels::data<cpu::Acc<T>>(stats), threads_for(x.numel()));
    });
    ctx->save_for_backward({x, factor, table_row, stats});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const auto &x = saved[0], &factor = saved[1], &table_row = saved[2], &stats = saved[3];
    const auto dy = gradients[0].contiguous();
    const auto channels = x.size(2), table_rows = factor.size(0) * factor.size(1);
    const auto dx = at::empty_like(x);
    const auto dfactor = at::empty(factor.sizes(), stats.options()), dshift = at::empty_like(dfactor);
    kernels::dispatch("modulated_layer_norm", x.scalar_type(), [&]<class T>(T) {
      using A = cpu::Acc<T>;
      cpu::modulated_norm_backward<T>(runs_of(x, factor, table_row), channels, table_rows, kernels::data<T>(dy),
                                      kernels::data<T>(x), {kernels::data<T>(factor), channels},
                                      kernels::data<A>(stats), kernels::data<T>(dx), kernels::data<A>(dfactor),
                                      kernels::data<A>(dshift), threads_for(x.numel()));
    });
    return {dx, dfactor.to(x.scalar_type()), dshift.to(x.scalar_type()), at::Tensor(), at::Tensor()};
  }
};

/// [Bf, R, C] to a row for each token.
at::Tensor spread(const at::Tensor& table, const at::Tensor& table_row) {
  return table_row.defined() ? table.index_select(1, table_row) : table.narrow(1, 0, 1);
}

}  // namespace

at::Tensor modulated_layer_norm(const at::Tensor& x_BNC, const at::Tensor& factor_BRC, const at::Tensor& shift_BRC,
                                const at::Tensor& table_row_N, double eps) {
  TORCH_CHECK(
      x_BNC.dim() == 3 && factor_BRC.dim() == 3 && factor_BRC.sizes() == shift_BRC.sizes() &&
          factor_BRC.size(2) == x_BNC.size(2) && (factor_BRC.size(0) == 1 || factor_BRC.size(0) == x_BNC.size(0)),
      "modulated_layer_norm: x ", x_BNC.sizes(), " with factor ", factor_BRC.sizes(), " and shift ", shift_BRC.sizes());
  TORCH_CHECK(!table_row_N.defined() || (table_row_N.dim() == 1 && table_row_N.size(0) == x_BNC.size(1) &&
                                         table_row_N.scalar_type() == at::kInt && table_row_N.is_contiguous()),
              "modulated_layer_norm: the table rows of ", x_BNC.size(1), " tokens are not one i32 each");
  if (!x_BNC.is_cpu()) {
    const auto normed =
        at::layer_norm(x_BNC.to(kernels::accumulate_dtype(x_BNC.scalar_type())), {x_BNC.size(2)}, {}, {}, eps);
    return (normed * spread(factor_BRC, table_row_N) + spread(shift_BRC, table_row_N)).to(x_BNC.scalar_type());
  }
  const auto dtype = x_BNC.scalar_type();
  return ModulatedNorm::apply(x_BNC.contiguous(), factor_BRC.to(dtype).contiguous(), shift_BRC.to(dtype).contiguous(),
                              kernels::optional(table_row_N), eps);
}

}  // namespace troupe::kernels
