#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/dispatch.h"
#include "kernels/gelu.h"
#include "kernels/row_kernels.h"

namespace troupe::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct GeluTanh : torch::autograd::Function<GeluTanh> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& u) {
    auto y = at::empty_like(u);
    kernels::dispatch("gelu_tanh", u.scalar_type(), [&]<class T>(T) {
      cpu::gelu_tanh_forward<T>(u.numel(), kernels::data<T>(u), kernels::data<T>(y), threads_for(u.numel()));
    });
    ctx->save_for_backward({u});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto u = ctx->get_saved_variables()[0], dy = gradients[0].contiguous();
    auto du = at::empty_like(u);
    kernels::dispatch("gelu_tanh", u.scalar_type(), [&]<class T>(T) {
      cpu::gelu_tanh_backward<T>(u.numel(), kernels::data<T>(dy), kernels::data<T>(u), kernels::data<T>(du),
                                 threads_for(u.numel()));
    });
    return {du};
  }
};

}  // namespace

at::Tensor gelu_tanh(const at::Tensor& u) { return u.is_cpu() ? GeluTanh::apply(u.contiguous()) : at::gelu(u, "tanh"); }

}  // namespace troupe::kernels
