#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "model/wan/infer/noise_levels.h"

namespace troupe::model {

/// The way from one noise level to the next, in f32: x' = ratio * x - scale * (m + what order 2 adds), with
/// ratio = sigma'/sigma and scale = alpha' expm1(-h). rk places the prediction before m.
struct UniPcInterval {
  int order = 0;
  float ratio = 0, scale = 0, rk = 1;
};

/// What one step multiplies.
struct UniPcStep {
  float sigma = 0;
  /// from the level before to this one; order 0 in the first step
  UniPcInterval corrector;
  /// its weights of (m_{i-2} - m_{i-1}) / rk and of m_i - m_{i-1}
  float rho_before = 0, rho_now = 0.5F;
  /// from this level to the next
  UniPcInterval predictor;
};

/// Coefficients of UniPC (arXiv:2302.04867) of order 2, B(h) = expm1(h), predicting x0, lower order at the end: they
/// depend on the levels alone. Immutable.
class UniPcPlan {
 public:
  explicit UniPcPlan(NoiseLevels levels);

  const NoiseLevels& levels() const { return levels_; }
  const UniPcStep& step(std::int64_t index) const { return steps_.at(static_cast<std::size_t>(index)); }

 private:
  NoiseLevels levels_;
  std::vector<UniPcStep> steps_;
};

/// Denoises one tensor. Not thread-safe.
class UniPcSampler {
 public:
  /// `sample` is noise; it is not changed. Results have its dtype; in f32 they are the reference's bits where MKL's
  /// logarithm takes the same path on both machines (MKL_CBWR=COMPATIBLE), else they may differ in the last two.
  UniPcSampler(std::shared_ptr<const UniPcPlan> plan, at::Tensor sample);

  const at::Tensor& sample() const { return sample_; }
  bool done() const { return index_ == plan_->levels().steps(); }
  /// Takes the velocity at the present sample and moves it to the next noise level. Throws c10::Error when done.
  void advance(const at::Tensor& velocity);

 private:
  std::shared_ptr<const UniPcPlan> plan_;
  std::int64_t index_ = 0;
  /// the sample after the last predictor
  at::Tensor sample_;
  /// the sample that the last predictor started from
  at::Tensor corrected_;
  /// x0 predictions of the last two steps
  at::Tensor last_, before_;
};

}  // namespace troupe::model
