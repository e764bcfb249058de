#pragma once

#include <ATen/core/Tensor.h>

#include <span>

namespace troupe::model {

// Centring and scaling of advantages. Which samples are counted is the caller's: a rank's own moments, those summed
// over ranks, or those of one mini-batch.

/// Sums over the valid entries, in f64. Add those of several ranks member by member.
struct AdvantageMoments {
  double count = 0, sum = 0, sum_of_squares = 0;

  /// One more entry; a number that is not finite is left out, as the loss drops its row.
  void add(double x);
  double mean() const { return count > 0 ? sum / count : 0; }
  /// Divided by count - 1; 0 below two entries.
  double unbiased_variance() const;
};

/// mask broadcasts to x; undefined: every entry counts. Waits for the device.
AdvantageMoments advantage_moments(const at::Tensor& x, const at::Tensor& mask);

/// (x - mean) / (std + epsilon), unbiased std. Masked entries are shifted and scaled too. Fewer than two valid entries
/// leave x as it is: one has no spread (RLinf makes NaN of them all).
at::Tensor normalise(const at::Tensor& x, const AdvantageMoments& moments, double epsilon = 1e-5);
/// The same in place, in f32.
void normalise(std::span<float> x, const AdvantageMoments& moments, double epsilon = 1e-5);

}  // namespace troupe::model
