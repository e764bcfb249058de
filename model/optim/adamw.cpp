#include "model/optim/adamw.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace troupe::model {

void adamw_step(std::span<float> param, std::span<float> m, std::span<float> v, std::span<const float> grad,
                float grad_scale, double lr, std::int64_t update, const AdamWOptions& options) {
  TROUPE_CHECK(m.size() == param.size() && v.size() == param.size() && grad.size() == param.size(),
               "one length for all four");
  TROUPE_CHECK(update >= 1, "updates are counted from 1");
  const double correction1 = 1.0 - std::pow(options.beta1, static_cast<double>(update));
  const double correction2 = 1.0 - std::pow(options.beta2, static_cast<double>(update));
  const auto keep = static_cast<float>(1.0 - lr * options.weight_decay);
  const auto b1 = static_cast<float>(options.beta1), one_minus_b1 = static_cast<float>(1.0 - options.beta1);
  const auto b2 = static_cast<float>(options.beta2), one_minus_b2 = static_cast<float>(1.0 - options.beta2);
  const auto step = static_cast<float>(lr / correction1);
  const auto root = static_cast<float>(std::sqrt(correction2));
  const auto eps = static_cast<float>(options.eps);

  float* __restrict__ p_ = param.data();
  float* __restrict__ m_ = m.data();
  float* __restrict__ v_ = v.data();
  const float* __restrict__ g_ = grad.data();
  const std::size_t n = param.size();
  for (std::size_t i = 0; i < n; ++i) {
    const float g = g_[i] * grad_scale;
    const float mi = b1 * m_[i] + one_minus_b1 * g;
    const float vi = b2 * v_[i] + one_minus_b2 * g * g;
    m_[i] = mi;
    v_[i] = vi;
    p_[i] = p_[i] * keep - step * mi / (std::sqrt(vi) / root + eps);
  }
}

double sum_of_squares(std::span<const float> x) {
  constexpr std::size_t kBlock = 1024, kLanes = 8;
  double total = 0;
  for (std::size_t begin = 0; begin < x.size(); begin += kBlock) {
    const std::size_t n = std::min(kBlock, x.size() - begin), whole = n / kLanes * kLanes;
    const float* block = x.data() + begin;
    double lanes[kLanes] = {};
    for (std::size_t i = 0; i < whole; i += kLanes) {
      for (std::size_t j = 0; j < kLanes; ++j)
        lanes[j] += static_cast<double>(block[i + j]) * static_cast<double>(block[i + j]);
    }
    for (std::size_t i = whole; i < n; ++i)
      lanes[i - whole] += static_cast<double>(block[i]) * static_cast<double>(block[i]);
    total += ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
  }
  return total;
}

void add_to(std::span<float> sum, std::span<const float> x) {
  TROUPE_CHECK(sum.size() == x.size(), "one length for both");
  float* __restrict__ s = sum.data();
  const float* __restrict__ a = x.data();
  for (std::size_t i = 0; i < sum.size(); ++i) s[i] += a[i];
}

float clip_factor(double norm, double limit) {
  if (limit <= 0) return 1.0f;
  return static_cast<float>(std::min(1.0, limit / (norm + 1e-6)));
}

}  // namespace troupe::model
