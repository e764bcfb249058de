#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/dispatch.h"
#include "kernels/linear.h"
#include "kernels/product.h"
#include "kernels/row_kernels.h"

namespace troupe::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  auto out = at::empty({a.size(0), b.size(1)}, a.options());
  product_out(out, a, b);
  return out;
}

/// `x` in `dtype`.
at::Tensor in_dtype(const at::Tensor& x, at::ScalarType dtype) {
  if (x.scalar_type() == dtype) return x;
  auto converted = at::empty(x.sizes(), x.options().dtype(dtype));
  convert_out(converted, x);
  return converted;
}

struct Linear : torch::autograd::Function<Linear> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_MK, const at::Tensor& weight,
                            const std::optional<at::Tensor>& optional_bias) {
    const auto bias = optional_bias.value_or(at::Tensor());
    ctx->save_for_backward({x_MK, weight});
    ctx->saved_data["bias"] = bias.defined();
    const auto y = product(product_operand(x_MK), product_operand(weight).t());
    if (!bias.defined()) return in_dtype(y, x_MK.scalar_type());
    const auto result = y.scalar_type() == x_MK.scalar_type() ? y : at::empty(y.sizes(), x_MK.options());
    add_bias_out(result, y, bias);
    return result;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const auto dtype = saved[0].scalar_type();
    const auto dy = product_operand(gradients[0]);
    variable_list out(3);
    if (ctx->needs_input_grad(0)) out[0] = in_dtype(product(dy, product_operand(saved[1])), dtype);
    if (ctx->needs_input_grad(1)) out[1] = in_dtype(product(dy.t(), product_operand(saved[0])), dtype);
    if (ctx->saved_data["bias"].toBool() && ctx->needs_input_grad(2)) {
      const auto sum = at::empty({dy.size(1)}, dy.options().dtype(accumulate_dtype(dtype)));
      sum_rows_out(sum, gradients[0].contiguous());
      out[2] = sum.to(dtype);
    }
    return out;
  }
};

}  // namespace

void add_bias_out(const at::Tensor& y, const at::Tensor& product, const at::Tensor& bias) {
  dispatch("linear", y.scalar_type(), [&]<class T>(T) {
    const auto add = [&]<class S>(const S* from) {
      cpu::add_bias<T, S>(y.size(0), y.size(1), from, kernels::data<T>(bias), kernels::data<T>(y),
                          threads_for(y.numel()));
    };
    if (product.scalar_type() == y.scalar_type())
      add(kernels::data<const T>(product));
    else
      add(kernels::data<const cpu::Acc<T>>(product));
  });
}

void sum_rows_out(const at::Tensor& sum, const at::Tensor& x) {
  dispatch("linear", x.scalar_type(), [&]<class T>(T) {
    cpu::sum_rows<T>(x.size(0), x.size(1), kernels::data<T>(x), kernels::data<cpu::Acc<T>>(sum),
                     threads_for(x.numel()));
  });
}

at::Tensor linear_product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  TORCH_CHECK(
      weight.dim() == 2 && x.dim() >= 1 && x.size(-1) == weight.size(1) && x.scalar_type() == weight.scalar_type() &&
          (!bias.defined() || (bias.numel() == weight.size(0) && bias.scalar_type() == x.scalar_type())),
      "linear: x ", x.sizes(), " ", x.scalar_type(), " with weight ", weight.sizes(), " ", weight.scalar_type());
  if (!x.is_cpu()) return at::linear(x, weight, bias);
  const auto flat = x.reshape({-1, x.size(-1)}).contiguous();
  auto shape = x.sizes().vec();
  shape.back() = weight.size(0);
  return Linear::apply(flat, weight, kernels::optional(bias.defined() ? bias.contiguous() : bias)).view(shape);
}

}  // namespace troupe::kernels
