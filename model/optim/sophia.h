#pragma once

#include <cstdint>
#include <span>

#include "base/namespaces.h"

namespace troupe::model {

// Sophia-G (arXiv:2305.14342, algorithm 3). Both functions are element-wise, so any split of the parameters over calls
// or threads gives the same bits of what they write. All f32. A zero element with zero gradient stays zero.

/// Its constants; the learning rate comes with each step.
struct SophiaOptions {
  double beta1 = 0.965;
  double beta2 = 0.99;
  double rho = 0.04;
  double weight_decay = 1e-5;
};

/// One update of a run of parameters:
///     g = grad * grad_scale;  p = p * (1 - lr * decay);  m = b1 m + (1 - b1) g
///     p = p - lr * clamp(m / (rho h + 1e-15), -1, 1)
/// so that without decay no parameter moves by more than lr. Where h is 0 a parameter moves by lr against the sign of
/// m.
///
/// Shapes: param, m, h, grad of one length; h is not below 0. `grad_scale` is the clip factor. Returns how many
/// elements moved by the whole lr.
std::int64_t sophia_step(std::span<float> param, std::span<float> m, std::span<const float> h,
                         std::span<const float> grad, float grad_scale, double lr, const SophiaOptions& options);

/// The estimate of the Hessian's diagonal takes in one more:
///     h = b2 h + (1 - b2) factor g^2
/// where g is the gradient of a loss whose targets were drawn from the model (model/loss/sampled_label.h), and `factor`
/// the number of losses that it is a mean of. Returns the sum of h in f64.
double refresh_curvature(std::span<float> h, std::span<const float> grad, double factor, double beta2);

}  // namespace troupe::model
