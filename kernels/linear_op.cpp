#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/dispatch.h"
#include "kernels/linear.h"
#include "kernels/row_kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace troupe::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The dtype that products of `dtype` are computed in.
at::ScalarType product_dtype(at::ScalarType dtype) {
  return dtype == at::kBFloat16 && computes_bf16_in_f32() ? at::kFloat : dtype;
}

struct Linear : torch::autograd::Function<Linear> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_MK, const at::Tensor& weight,
                            const std::optional<at::Tensor>& optional_bias) {
    const auto bias = optional_bias.value_or(at::Tensor());
    ctx->save_for_backward({x_MK, weight});
    ctx->saved_data["bias"] = bias.defined();
    const auto dtype = x_MK.scalar_type(), wide = product_dtype(dtype);
    const auto product = at::mm(x_MK.to(wide), weight.to(wide).t());
    if (!bias.defined()) return product.to(dtype);
    if (wide != kernels::accumulate_dtype(dtype)) return product.add_(bias);
    auto y = wide == dtype ? product : at::empty(product.sizes(), x_MK.options());
    kernels::dispatch("linear", dtype, [&]<class T>(T) {
      cpu::add_bias<T>(y.size(0), y.size(1), kernels::data<cpu::Acc<T>>(product), kernels::data<T>(bias),
                       kernels::data<T>(y), kernels::num_threads());
    });
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const auto dtype = saved[0].scalar_type(), wide = product_dtype(dtype);
    const auto dy = gradients[0].to(wide);
    variable_list out(3);
    if (ctx->needs_input_grad(0)) out[0] = at::mm(dy, saved[1].to(wide)).to(dtype);
    if (ctx->needs_input_grad(1)) out[1] = at::mm(dy.t(), saved[0].to(wide)).to(dtype);
    if (ctx->saved_data["bias"].toBool() && ctx->needs_input_grad(2)) out[2] = dy.sum(0).to(dtype);
    return out;
  }
};

struct Attention : torch::autograd::Function<Attention> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    const auto dtype = q.scalar_type(), wide = product_dtype(dtype);
    const auto heads_first = [&](const at::Tensor& x) { return x.to(wide).transpose(1, 2); };
    const auto [out, lse] =
        at::_scaled_dot_product_flash_attention_for_cpu(heads_first(q), heads_first(k), heads_first(v));
    auto result = out.transpose(1, 2).to(dtype);
    ctx->save_for_backward({q, k, v, result, lse});
    return result;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const auto dtype = saved[0].scalar_type(), wide = product_dtype(dtype);
    const auto heads_first = [&](const at::Tensor& x) { return x.to(wide).transpose(1, 2); };
    const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        heads_first(gradients[0]), heads_first(saved[0]), heads_first(saved[1]), heads_first(saved[2]),
        heads_first(saved[3]), saved[4], /*dropout_p=*/0.0, /*is_causal=*/false);
    variable_list out;
    for (const auto& gradient : {dq, dk, dv}) out.push_back(gradient.transpose(1, 2).to(dtype));
    return out;
  }
};

#if defined(__x86_64__)
/// Whether the processor multiplies tiles of bf16 and the system keeps their registers. Asked of CPUID, because clang
/// 14's __builtin_cpu_supports does not know the feature. Source: Intel's manual, volume 1, 13.3 and 18.2.
bool has_bf16_tiles() {
  constexpr unsigned kOsXsave = 1U << 27, kTileState = 3U << 17, kAmxBf16 = 1U << 22, kAmxTile = 1U << 24;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kOsXsave) == 0) return false;
  unsigned enabled = 0, upper = 0;
  __asm__("xgetbv" : "=a"(enabled), "=d"(upper) : "c"(0));
  if ((enabled & kTileState) != kTileState || __get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  return (d & kAmxBf16) != 0 && (d & kAmxTile) != 0;
}
#endif

}  // namespace

bool computes_bf16_in_f32() {
#if defined(__x86_64__)
  static const bool has_tiles = has_bf16_tiles();
  return !has_tiles;
#else
  return false;
#endif
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

at::Tensor attention(const at::Tensor& q_BTHD, const at::Tensor& k_BSHD, const at::Tensor& v_BSHD) {
  if (q_BTHD.is_cpu()) return Attention::apply(q_BTHD, k_BSHD, v_BSHD);
  return at::scaled_dot_product_attention(q_BTHD.transpose(1, 2), k_BSHD.transpose(1, 2), v_BSHD.transpose(1, 2))
      .transpose(1, 2);
}

}  // namespace troupe::kernels
