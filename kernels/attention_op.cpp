#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/attention.h"
#include "kernels/dispatch.h"
#include "kernels/product.h"

namespace troupe::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// body(sample, head) for each, one thread each.
template <class F>
void each_head(const at::Tensor& x_BTHD, const F& body) {
  const std::int64_t heads = x_BTHD.size(2);
  each_part(x_BTHD.size(0) * heads, num_threads(), [&](std::int64_t part) {
    const at::NoGradGuard no_grad;
    body(part / heads, part % heads);
  });
}

/// One head of one sample as the library wants it, [1, 1, T, D], in the dtype of its products.
at::Tensor head_of(const at::Tensor& x_BTHD, std::int64_t sample, std::int64_t head) {
  return x_BTHD.narrow(0, sample, 1).narrow(2, head, 1).transpose(1, 2).to(product_dtype(x_BTHD.scalar_type()));
}

/// Writes or adds one head's result.
void put_head(const at::Tensor& to_BTHD, std::int64_t sample, std::int64_t head, const at::Tensor& value,
              bool accumulate) {
  const auto place = to_BTHD.narrow(0, sample, 1).narrow(2, head, 1).transpose(1, 2);
  if (accumulate)
    place.add_(value);
  else
    place.copy_(value);
}

struct Attention : torch::autograd::Function<Attention> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    auto out = at::empty(q.sizes(), q.options());
    const auto lse = at::empty({q.size(0), q.size(2), q.size(1)}, q.options().dtype(accumulate_dtype(q.scalar_type())));
    attention_out(out, lse, q, k, v);
    ctx->save_for_backward({q, k, v, out, lse});
    return out;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    variable_list out;
    for (std::size_t i = 0; i < 3; ++i) out.push_back(at::empty(saved[i].sizes(), saved[i].options()));
    attention_gradients_out(out[0], out[1], out[2], false, gradients[0], saved[0], saved[1], saved[2], saved[3],
                            saved[4]);
    return out;
  }
};

}  // namespace

void attention_out(const at::Tensor& out_BTHD, const at::Tensor& lse_BHT, const at::Tensor& q_BTHD,
                   const at::Tensor& k_BSHD, const at::Tensor& v_BSHD) {
  TORCH_CHECK(q_BTHD.dim() == 4 && k_BSHD.dim() == 4 && k_BSHD.sizes() == v_BSHD.sizes() &&
                  q_BTHD.size(0) == k_BSHD.size(0) && q_BTHD.size(2) == k_BSHD.size(2) &&
                  q_BTHD.size(3) == k_BSHD.size(3) && q_BTHD.scalar_type() == k_BSHD.scalar_type() &&
                  k_BSHD.scalar_type() == v_BSHD.scalar_type(),
              "attention: q ", q_BTHD.sizes(), " ", q_BTHD.scalar_type(), ", k ", k_BSHD.sizes(), " ",
              k_BSHD.scalar_type(), ", v ", v_BSHD.sizes(), " ", v_BSHD.scalar_type());
  each_head(q_BTHD, [&](std::int64_t sample, std::int64_t head) {
    const auto [out, lse] = at::_scaled_dot_product_flash_attention_for_cpu(
        head_of(q_BTHD, sample, head), head_of(k_BSHD, sample, head), head_of(v_BSHD, sample, head));
    put_head(out_BTHD, sample, head, out, false);
    lse_BHT.select(0, sample).select(0, head).copy_(lse.view(-1));
  });
}

void attention_gradients_out(const at::Tensor& dq_BTHD, const at::Tensor& dk_BSHD, const at::Tensor& dv_BSHD,
                             bool accumulate, const at::Tensor& dout_BTHD, const at::Tensor& q_BTHD,
                             const at::Tensor& k_BSHD, const at::Tensor& v_BSHD, const at::Tensor& out_BTHD,
                             const at::Tensor& lse_BHT) {
  each_head(q_BTHD, [&](std::int64_t sample, std::int64_t head) {
    const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        head_of(dout_BTHD, sample, head), head_of(q_BTHD, sample, head), head_of(k_BSHD, sample, head),
        head_of(v_BSHD, sample, head), head_of(out_BTHD, sample, head), lse_BHT.narrow(0, sample, 1).narrow(1, head, 1),
        /*dropout_p=*/0.0, /*is_causal=*/false);
    put_head(dq_BTHD, sample, head, dq, false);
    put_head(dk_BSHD, sample, head, dk, accumulate);
    put_head(dv_BSHD, sample, head, dv, accumulate);
  });
}

at::Tensor attention(const at::Tensor& q_BTHD, const at::Tensor& k_BSHD, const at::Tensor& v_BSHD) {
  if (q_BTHD.is_cpu()) return Attention::apply(q_BTHD, k_BSHD, v_BSHD);
  return at::scaled_dot_product_attention(q_BTHD.transpose(1, 2), k_BSHD.transpose(1, 2), v_BSHD.transpose(1, 2))
      .transpose(1, 2);
}

}  // namespace troupe::kernels
