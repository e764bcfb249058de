#include "model/loss/advantage_norm.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace troupe::model {

void AdvantageMoments::add(double x) {
  if (!std::isfinite(x)) return;
  count += 1;
  sum += x;
  sum_of_squares += x * x;
}

double AdvantageMoments::unbiased_variance() const {
  if (count < 2) return 0;
  return std::max(0.0, (sum_of_squares - sum * sum / count) / (count - 1));
}

AdvantageMoments advantage_moments(const at::Tensor& x, const at::Tensor& mask) {
  auto values = x.detach().to(at::kDouble);
  if (mask.defined()) values = values.masked_select(mask.to(at::kBool).expand_as(x));
  // one number that is none must not take the others with it; the loss counts and drops its row
  const auto finite = values.isfinite();
  if (!finite.all().item<bool>()) values = values.masked_select(finite);
  return {static_cast<double>(values.numel()), values.sum().item<double>(), values.square().sum().item<double>()};
}

at::Tensor normalise(const at::Tensor& x, const AdvantageMoments& m, double epsilon) {
  if (m.count < 2) return x;
  return (x - m.mean()) / (std::sqrt(m.unbiased_variance()) + epsilon);
}

void normalise(std::span<float> x, const AdvantageMoments& m, double epsilon) {
  if (m.count < 2) return;
  const auto mean = static_cast<float>(m.mean()),
             deviation = static_cast<float>(std::sqrt(m.unbiased_variance()) + epsilon);
  for (float& value : x) value = (value - mean) / deviation;
}

}  // namespace troupe::model
