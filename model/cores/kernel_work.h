#pragma once

#include <array>
#include <cstdint>

#include "base/enum_names.h"
#include "base/namespaces.h"

namespace troupe::model {

/// Kernels whose time on cores follows one formula (model/cores/core_rates.h).
enum class KernelFamily : std::uint8_t {
  /// a matrix product in tiles (kernels/product.h): a b^T, a b and a^T b of dense matrices
  product_nt,
  product_nn,
  product_tn,
  /// attention by heads, and its gradients
  attention,
  attention_gradient,
  /// the rows of kernels/row_kernels.h
  norm,
  norm_gradient,
  rotated_norm,
  rotated_norm_gradient,
  residual,
  residual_gradient,
  gelu,
  gelu_gradient,
  row_sum,
  /// sums, conversions and biases, on the kernels' threads
  elementwise,
  /// copies and sums of LibTorch on one thread
  serial,
  /// of the optimizer
  adamw,
  squares,
  /// sums of what ranks sent, and what moves between ranks as threads of one process or as processes of one node
  rank_sum,
  thread_transfer,
  gloo_transfer,
};
constexpr auto enum_names(KernelFamily) {
  return std::array{"product_nt",
                    "product_nn",
                    "product_tn",
                    "attention",
                    "attention_gradient",
                    "norm",
                    "norm_gradient",
                    "rotated_norm",
                    "rotated_norm_gradient",
                    "residual",
                    "residual_gradient",
                    "gelu",
                    "gelu_gradient",
                    "row_sum",
                    "elementwise",
                    "serial",
                    "adamw",
                    "squares",
                    "rank_sum",
                    "thread_transfer",
                    "gloo_transfer"};
}
inline constexpr std::size_t kKernelFamilies = 21;

constexpr bool is_product(KernelFamily family) { return family <= KernelFamily::product_tn; }
constexpr bool is_attention(KernelFamily family) {
  return family == KernelFamily::attention || family == KernelFamily::attention_gradient;
}
constexpr bool is_transfer(KernelFamily family) { return family >= KernelFamily::thread_transfer; }

/// One call of a kernel: all that its time on cores depends on, but for the machine.
struct KernelWork {
  KernelFamily family = KernelFamily::serial;
  /// operands are bf16, else f32
  bool is_bf16 = false;
  /// a product [m, k] x [k, n]; attention of m queries over n keys with k channels a head
  std::int64_t m = 0, n = 0, k = 0;
  /// attention: heads of all samples
  std::int64_t heads = 0;
  /// of the other families: bytes that are read and written, or sent to other ranks
  double bytes = 0;
  /// how often
  double calls = 1;

  /// Floating-point operations of products, attention's included: 2 a multiplication.
  double product_flops() const {
    const double multiplications = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    if (is_product(family)) return 2 * calls * multiplications;
    if (!is_attention(family)) return 0;
    // two products forward; five backward, of which one makes the scores again
    return (family == KernelFamily::attention ? 4 : 10) * calls * multiplications * static_cast<double>(heads);
  }
};

/// AdamW of f32 elements: reads parameter, both moments and gradient, writes all but the gradient.
inline KernelWork adamw_work(std::int64_t elements) {
  return {.family = KernelFamily::adamw, .bytes = 28.0 * static_cast<double>(elements)};
}
inline KernelWork squares_work(std::int64_t elements) {
  return {.family = KernelFamily::squares, .bytes = 4.0 * static_cast<double>(elements)};
}
/// The sum of `ranks` parts of f32 elements; `adds`: to what is there.
inline KernelWork rank_sum_work(std::int64_t ranks, std::int64_t elements, bool adds) {
  return {.family = KernelFamily::rank_sum,
          .bytes = 4.0 * static_cast<double>((ranks + 1 + (adds ? 1 : 0)) * elements)};
}

}  // namespace troupe::model
