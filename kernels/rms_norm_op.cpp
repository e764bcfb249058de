#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/dispatch.h"
#include "kernels/rms_norm.h"
#include "kernels/row_kernels.h"

namespace troupe::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

template <class T>
Rotation<T> rotation_of(const at::Tensor& cos, const at::Tensor& sin) {
  if (!cos.defined()) return {};
  return {kernels::data<cpu::Acc<T>>(cos), kernels::data<cpu::Acc<T>>(sin), cos.size(0), 2 * cos.size(1)};
}

struct RmsNorm : torch::autograd::Function<RmsNorm> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& gain,
                            const std::optional<at::Tensor>& optional_cos,
                            const std::optional<at::Tensor>& optional_sin, double eps) {
    const auto cos = optional_cos.value_or(at::Tensor()), sin = optional_sin.value_or(at::Tensor());
    const auto channels = x.size(2), rows = x.size(0) * x.size(1);
    auto y = at::empty_like(x);
    auto rstd = at::empty({rows}, x.options().dtype(kernels::accumulate_dtype(x.scalar_type())));
    kernels::dispatch("rms_norm", x.scalar_type(), [&]<class T>(T) {
      cpu::rms_norm_forward<T>(rows, channels, kernels::data<T>(x), channels, kernels::data<T>(gain), eps,
                               rotation_of<T>(cos, sin), kernels::data<T>(y), kernels::data<cpu::Acc<T>>(rstd),
                               threads_for(x.numel()));
    });
    ctx->save_for_backward({x, gain, cos, sin, rstd});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const auto &x = saved[0], &gain = saved[1], &rstd = saved[4];
    const auto dy = gradients[0].contiguous();
    const auto dx = at::empty_like(x), dgain = at::empty(gain.sizes(), rstd.options());
    kernels::dispatch("rms_norm", x.scalar_type(), [&]<class T>(T) {
      using A = cpu::Acc<T>;
      cpu::rms_norm_backward<T>(x.size(0) * x.size(1), x.size(2), kernels::data<T>(dy), kernels::data<T>(x), x.size(2),
                                kernels::data<T>(gain), kernels::data<A>(rstd), rotation_of<T>(saved[2], saved[3]),
                                kernels::data<T>(dx), x.size(2), kernels::data<A>(dgain), threads_for(x.numel()));
    });
    return {dx, dgain.to(gain.scalar_type()), at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

/// The same from ATen's operators.
at::Tensor composed(const at::Tensor& x, const at::Tensor& gain, double eps, const at::Tensor& cos,
                    const at::Tensor& sin) {
  const auto wide = x.to(kernels::accumulate_dtype(x.scalar_type()));
  auto v = (wide * at::rsqrt(wide.square().mean(-1, true) + eps)).to(x.scalar_type()) * gain;
  if (!cos.defined()) return v;
  const auto pairs = v.to(cos.scalar_type()).unflatten(-1, {-1, cos.size(1), 2});
  const auto even = pairs.select(-1, 0), odd = pairs.select(-1, 1);
  const auto c = cos.unsqueeze(1), s = sin.unsqueeze(1);
  return at::stack({even * c - odd * s, even * s + odd * c}, -1).flatten(2).to(x.scalar_type());
}

}  // namespace

at::Tensor rms_norm_rotated(const at::Tensor& x_BNC, const at::Tensor& gain_C, double eps, const at::Tensor& cos,
                            const at::Tensor& sin) {
  TORCH_CHECK(x_BNC.dim() == 3 && gain_C.dim() == 1 && gain_C.size(0) == x_BNC.size(2) &&
                  gain_C.scalar_type() == x_BNC.scalar_type(),
              "rms_norm: x ", x_BNC.sizes(), " ", x_BNC.scalar_type(), " with gain ", gain_C.sizes(), " ",
              gain_C.scalar_type());
  if (cos.defined()) {
    TORCH_CHECK(cos.dim() == 2 && cos.sizes() == sin.sizes() && cos.size(0) == x_BNC.size(1) &&
                    x_BNC.size(2) % (2 * cos.size(1)) == 0 && cos.is_contiguous() && sin.is_contiguous() &&
                    cos.scalar_type() == kernels::accumulate_dtype(x_BNC.scalar_type()),
                "rms_norm: x ", x_BNC.sizes(), " with rotation tables ", cos.sizes(), " ", cos.scalar_type());
  }
  if (!x_BNC.is_cpu()) return composed(x_BNC, gain_C, eps, cos, sin);
  return RmsNorm::apply(x_BNC.contiguous(), gain_C.contiguous(), kernels::optional(cos), kernels::optional(sin), eps);
}

}  // namespace troupe::kernels
