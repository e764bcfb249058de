#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "kernels/attention.h"
#include "kernels/dispatch.h"
#include "kernels/product.h"

namespace troupe::kernels {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Heads of one sample that go through the library in one call.
struct Heads {
  std::int64_t begin = 0, count = 0;
  at::Tensor of(const at::Tensor& x_BTHD) const { return x_BTHD.narrow(2, begin, count); }
};

/// body(sample, heads) for every head of each sample, one thread each. A call of the library costs some microseconds,
/// so small heads are together as far as the threads have work; how many are changes no bit.
template <class F>
void each_head(const at::Tensor& x_BTHD, const F& body) {
  constexpr std::int64_t kSmall = std::int64_t{1} << 18;  // elements of a call, beside which its start is nothing
  const std::int64_t samples = x_BTHD.size(0), heads = x_BTHD.size(2);
  if (x_BTHD.numel() == 0) return;
  const std::int64_t parts = num_threads() == 1 ? 1 : 2 * num_threads();  // two each, for those that take longer
  const auto groups = std::min(heads, std::max((parts + samples - 1) / samples, x_BTHD.numel() / samples / kSmall));
  each_part(samples * groups, num_threads(), [&](std::int64_t part) {
    const at::NoGradGuard no_grad;
    const auto group = part % groups, begin = group * heads / groups;
    body(part / groups, Heads{begin, (group + 1) * heads / groups - begin});
  });
}

/// The keys and values that a sample's queries see.
struct SeenRows {
  std::int64_t sample = 0;  ///< of k and v
  std::int64_t begin = 0, count = 0;
  std::optional<at::Tensor> bias = {};  ///< [1, 1, 1, count], added to the logits

  bool same_rows(const SeenRows& other) const { return sample == other.sample && begin == other.begin; }
  at::Tensor of(const at::Tensor& x_BSHD) const { return x_BSHD.narrow(0, sample, 1).narrow(1, begin, count); }
};

/// ln(n) for the last row, zero for the others.
at::Tensor repeat_bias(const at::Tensor& k, std::int64_t count, std::int64_t n) {
  auto bias = at::zeros({1, 1, 1, count}, k.options().dtype(accumulate_dtype(k.scalar_type())));
  bias.narrow(3, count - 1, 1).fill_(std::log(static_cast<double>(n)));
  return bias;
}

/// For each of q's samples. Rows of two samples are the same or disjoint: samples write their gradients side by side.
std::vector<SeenRows> seen_rows(const at::Tensor& q, const at::Tensor& k, const at::Tensor& key_rows) {
  std::vector<SeenRows> seen;
  if (!key_rows.defined()) {
    for (std::int64_t b = 0; b < q.size(0); ++b) seen.push_back({b, 0, k.size(1)});
    return seen;
  }
  TORCH_CHECK(
      key_rows.is_cpu() && key_rows.scalar_type() == at::kLong && key_rows.sizes() == at::IntArrayRef({q.size(0), 3}),
      "attention: key_rows ", key_rows.sizes(), " ", key_rows.scalar_type(), ", want i64 [", q.size(0),
      ", 3] on the CPU");
  const auto rows = key_rows.accessor<std::int64_t, 2>();
  for (std::int64_t b = 0; b < q.size(0); ++b) {
    const auto begin = rows[b][0], end = rows[b][1], n = rows[b][2];
    TORCH_CHECK(0 <= begin && begin < end && end <= k.size(1) && n >= 1, "attention: sample ", b, " sees rows [", begin,
                ", ", end, "), the last ", n, " times, of ", k.size(1));
    for (std::int64_t other = 0; other < b; ++other) {
      const bool same = rows[other][0] == begin && rows[other][1] == end && rows[other][2] == n;
      TORCH_CHECK(same || rows[other][0] >= end || rows[other][1] <= begin, "attention: the rows of samples ", other,
                  " and ", b, " overlap and are not the same");
    }
    seen.push_back({0, begin, end - begin});
    if (n > 1) seen.back().bias = repeat_bias(k, end - begin, n);
  }
  return seen;
}

/// Heads of one sample [1, T, H, D] as the library wants them, [1, heads, T, D], in the dtype of its products.
at::Tensor heads_of(const at::Tensor& sample_BTHD, const Heads& heads) {
  return heads.of(sample_BTHD).transpose(1, 2).to(product_dtype(sample_BTHD.scalar_type()));
}

at::Tensor heads_of(const at::Tensor& x_BTHD, std::int64_t sample, const Heads& heads) {
  return heads_of(x_BTHD.narrow(0, sample, 1), heads);
}

/// Writes or adds some heads' results to one sample's.
void put_heads(const at::Tensor& to_BTHD, const Heads& heads, const at::Tensor& value, bool accumulate) {
  const auto place = heads.of(to_BTHD).transpose(1, 2);
  if (accumulate)
    place.add_(value);
  else
    place.copy_(value);
}

struct Attention : torch::autograd::Function<Attention> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const std::optional<at::Tensor>& optional_rows) {
    const auto key_rows = optional_rows.value_or(at::Tensor());
    auto out = at::empty(q.sizes(), q.options());
    const auto lse = at::empty({q.size(0), q.size(2), q.size(1)}, q.options().dtype(accumulate_dtype(q.scalar_type())));
    attention_out(out, lse, q, k, v, key_rows);
    ctx->save_for_backward({q, k, v, out, lse, key_rows});
    return out;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const auto dtype = saved[0].scalar_type();
    // sums over samples are f32
    const auto keys_dtype = saved[5].defined() ? accumulate_dtype(dtype) : dtype;
    const auto like = [&](std::size_t i, at::ScalarType as) {
      return at::empty(saved[i].sizes(), saved[i].options().dtype(as));
    };
    const auto dq = like(0, dtype), dk = like(1, keys_dtype), dv = like(2, keys_dtype);
    attention_gradients_out(dq, dk, dv, false, gradients[0], saved[0], saved[1], saved[2], saved[3], saved[4],
                            saved[5]);
    return {dq, dk.to(dtype), dv.to(dtype), at::Tensor()};
  }
};

}  // namespace

void attention_out(const at::Tensor& out_BTHD, const at::Tensor& lse_BHT, const at::Tensor& q_BTHD,
                   const at::Tensor& k_BSHD, const at::Tensor& v_BSHD, const at::Tensor& key_rows_B3) {
  const auto key_samples = key_rows_B3.defined() ? 1 : q_BTHD.size(0);
  TORCH_CHECK(q_BTHD.dim() == 4 && k_BSHD.dim() == 4 && k_BSHD.sizes() == v_BSHD.sizes() &&
                  k_BSHD.size(0) == key_samples && q_BTHD.size(2) == k_BSHD.size(2) &&
                  q_BTHD.size(3) == k_BSHD.size(3) && q_BTHD.scalar_type() == k_BSHD.scalar_type() &&
                  k_BSHD.scalar_type() == v_BSHD.scalar_type(),
              "attention: q ", q_BTHD.sizes(), " ", q_BTHD.scalar_type(), ", k ", k_BSHD.sizes(), " ",
              k_BSHD.scalar_type(), ", v ", v_BSHD.sizes(), " ", v_BSHD.scalar_type());
  const auto seen = seen_rows(q_BTHD, k_BSHD, key_rows_B3);
  each_head(q_BTHD, [&](std::int64_t sample, const Heads& heads) {
    const auto& rows = seen[static_cast<std::size_t>(sample)];
    const auto [out, lse] = at::_scaled_dot_product_flash_attention_for_cpu(
        heads_of(q_BTHD, sample, heads), heads_of(rows.of(k_BSHD), heads), heads_of(rows.of(v_BSHD), heads),
        /*dropout_p=*/0.0, /*is_causal=*/false, rows.bias);
    put_heads(out_BTHD.narrow(0, sample, 1), heads, out, false);
    lse_BHT.narrow(0, sample, 1).narrow(1, heads.begin, heads.count).copy_(lse);
  });
}

void attention_gradients_out(const at::Tensor& dq_BTHD, const at::Tensor& dk_BSHD, const at::Tensor& dv_BSHD,
                             bool accumulate, const at::Tensor& dout_BTHD, const at::Tensor& q_BTHD,
                             const at::Tensor& k_BSHD, const at::Tensor& v_BSHD, const at::Tensor& out_BTHD,
                             const at::Tensor& lse_BHT, const at::Tensor& key_rows_B3) {
  const auto seen = seen_rows(q_BTHD, k_BSHD, key_rows_B3);
  // rows that no sample sees
  if (key_rows_B3.defined() && !accumulate) dk_BSHD.zero_(), dv_BSHD.zero_();
  each_head(q_BTHD, [&](std::int64_t first, const Heads& heads) {
    const auto& rows = seen[static_cast<std::size_t>(first)];
    const auto sees_them = [&](const SeenRows& other) { return other.same_rows(rows); };
    // samples with the same rows add to them in turn, on the thread of the first
    if (std::find_if(seen.begin(), seen.end(), sees_them) != seen.begin() + first) return;
    for (auto sample = first; sample < q_BTHD.size(0); ++sample) {
      if (!sees_them(seen[static_cast<std::size_t>(sample)])) continue;
      const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
          heads_of(dout_BTHD, sample, heads), heads_of(q_BTHD, sample, heads), heads_of(rows.of(k_BSHD), heads),
          heads_of(rows.of(v_BSHD), heads), heads_of(out_BTHD, sample, heads),
          lse_BHT.narrow(0, sample, 1).narrow(1, heads.begin, heads.count), /*dropout_p=*/0.0, /*is_causal=*/false,
          rows.bias);
      put_heads(dq_BTHD.narrow(0, sample, 1), heads, dq, false);
      put_heads(rows.of(dk_BSHD), heads, dk, accumulate || sample != first);
      put_heads(rows.of(dv_BSHD), heads, dv, accumulate || sample != first);
    }
  });
}

at::Tensor attention(const at::Tensor& q_BTHD, const at::Tensor& k_BSHD, const at::Tensor& v_BSHD,
                     const at::Tensor& key_rows_B3) {
  if (q_BTHD.is_cpu()) return Attention::apply(q_BTHD, k_BSHD, v_BSHD, optional(key_rows_B3));
  const auto attend = [](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         const std::optional<at::Tensor>& bias) {
    return at::scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), bias)
        .transpose(1, 2);
  };
  if (!key_rows_B3.defined()) return attend(q_BTHD, k_BSHD, v_BSHD, {});
  std::vector<at::Tensor> samples;
  for (const auto& rows : seen_rows(q_BTHD, k_BSHD, key_rows_B3)) {
    auto bias = rows.bias;
    if (bias) bias = bias->to(q_BTHD.scalar_type());
    const auto q = q_BTHD.narrow(0, static_cast<std::int64_t>(samples.size()), 1);
    samples.push_back(attend(q, rows.of(k_BSHD), rows.of(v_BSHD), bias));
  }
  return at::cat(samples, 0);
}

}  // namespace troupe::kernels
