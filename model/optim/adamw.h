#pragma once

#include <cstdint>
#include <span>

#include "kernels/adamw_update.h"
#include "kernels/element.h"

namespace troupe::model {

/// AdamW's constants; the learning rate comes with each step.
struct AdamWOptions {
  double beta1 = 0.95;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-5;
};

/// The constants of update t = `update`, 1 for the first; the corrections 1 - b^t are formed in double and rounded.
kernels::AdamWUpdate adamw_update(double lr, std::int64_t update, const AdamWOptions& options);

/// One update of a run of parameters; element-wise, so any split of the parameters over calls gives the same bits.
///     g = grad * grad_scale;  p = p * (1 - lr * decay);  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
///     p = p - lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps)
///
/// Shapes: param, m, v, grad of one length, all f32. `update` is adamw_update's; `grad_scale` is the clip factor. A
/// zero element with zero gradient stays zero. Source: arXiv:1711.05101 algorithm 2; the order (decay first) of
/// LibTorch's fused AdamW.
void adamw_step(std::span<float> param, std::span<float> m, std::span<float> v, std::span<const float> grad,
                float grad_scale, const kernels::AdamWUpdate& update);
/// The same with moments kept in bf16: widened, updated and used in f32, and rounded to nearest even when they are
/// stored.
void adamw_step(std::span<float> param, std::span<simd::Bf16> m, std::span<simd::Bf16> v, std::span<const float> grad,
                float grad_scale, const kernels::AdamWUpdate& update);

/// Sum of x^2 in double: blocks of 1,024 elements are added in order to runs of 512, and those in order. The same bits
/// for the same run at any alignment.
double sum_of_squares(std::span<const float> x);

}  // namespace troupe::model
