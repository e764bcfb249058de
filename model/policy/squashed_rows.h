#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "model/policy/squashed_gaussian.h"

namespace troupe::model {

/// sample_squashed of an actor's outputs, log_std squashed by squash_log_std, and its backward, in plain loops over N
/// rows of W numbers: the same numbers up to rounding. With z the noise and t = tanh(u):
///     std = exp(log_std),  u = mean + std z,  action = scale t + bias,  slope = scale (1 - t^2)
///     logp = sum over W of -z^2 / 2 - log_std - log(2 pi) / 2 - log(slope + 1e-6)
///     d u = d_action slope + d_logp 2 t slope / (slope + 1e-6)
///     d mean = d u,  d log_std = d u std z - d_logp
/// f32 row-major; strides are numbers from row to row. Not thread-safe.
class SquashedRows {
 public:
  SquashedRows(std::int64_t rows, const ActionRange& range, double log_std_min, double log_std_max);

  /// Of outputs [N,2W], mean and raw log_std, and noise [N,W]; actions go to `action` with `stride`.
  void forward(const float* outputs, const float* noise, float* action, std::int64_t stride);
  /// squashed_mode, of the same outputs: tanh of the mean.
  void mode(const float* outputs, float* action, std::int64_t stride) const;
  /// [N], of the last forward.
  const std::vector<float>& logp() const noexcept { return logp_; }
  /// Of the same noise: writes d(loss)/d(outputs) [N,2W], for d(loss)/d(action) with `stride` and the d(loss)/d(logp)
  /// that all rows have.
  void backward(const float* noise, const float* d_action, std::int64_t stride, float d_logp, float* d_outputs) const;

 private:
  const std::size_t width_;
  std::vector<float> scale_, bias_;
  const float log_std_min_, half_range_;
  /// [N,W]: tanh(u), std, and d(log_std)/d(raw)
  std::vector<float> squashed_, std_, raw_slope_;
  std::vector<float> logp_;
};

}  // namespace troupe::model
