#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "model/wan/infer/noise_levels.h"

namespace troupe::model {

/// Denoises one tensor by Euler's method for dx/dsigma = v, a straight step to the next noise level:
///     x' = x + (sigma' - sigma) v
/// A step uses the velocity at the present sample alone. Not thread-safe.
class EulerSampler {
 public:
  /// `sample` is noise; it is not changed. Results have its dtype.
  EulerSampler(NoiseLevels levels, at::Tensor sample);

  const at::Tensor& sample() const { return sample_; }
  bool done() const { return index_ == levels_.steps(); }
  /// Takes the velocity at the present sample and moves it to the next noise level. Throws c10::Error when done.
  void advance(const at::Tensor& velocity);
  /// Puts `next` in place of what this step would have given, such as a drawn sample. Throws c10::Error when done.
  void advance_to(at::Tensor next);

 private:
  NoiseLevels levels_;
  std::int64_t index_ = 0;
  at::Tensor sample_;
};

}  // namespace troupe::model
