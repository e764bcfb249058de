#include "model/optim/adamw.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/threads.h"

namespace troupe::model {
namespace {

/// Elements that one thread takes at a time.
constexpr std::int64_t kRunElements = 16384;

inline float widen(float value) { return value; }
inline float widen(simd::Bf16 value) { return simd::to_float(value); }
inline void put(float& to, float value) { to = value; }
inline void put(simd::Bf16& to, float value) { to = simd::to_bf16(value); }

// A function of its own with restricted pointers: the compiler vectorises it, which it does not in a lambda.
template <class Moment>
void update_run(float* __restrict__ p_, Moment* __restrict__ m_, Moment* __restrict__ v_, const float* __restrict__ g_,
                std::int64_t n, float grad_scale, const kernels::AdamWUpdate& u) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = g_[i] * grad_scale;
    const float mi = u.b1 * widen(m_[i]) + u.one_minus_b1 * g;
    const float vi = u.b2 * widen(v_[i]) + u.one_minus_b2 * g * g;
    put(m_[i], mi);
    put(v_[i], vi);
    p_[i] = p_[i] * u.keep - u.step * mi / (std::sqrt(vi) / u.root + u.eps);
  }
}

/// Of at most 1024 elements.
double block_square(const float* block, std::size_t n) {
  constexpr std::size_t kLanes = 8;
  const std::size_t whole = n / kLanes * kLanes;
  double lanes[kLanes] = {};
  for (std::size_t i = 0; i < whole; i += kLanes) {
    for (std::size_t j = 0; j < kLanes; ++j)
      lanes[j] += static_cast<double>(block[i + j]) * static_cast<double>(block[i + j]);
  }
  for (std::size_t i = whole; i < n; ++i)
    lanes[i - whole] += static_cast<double>(block[i]) * static_cast<double>(block[i]);
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

template <class Moment>
void step_of(std::span<float> param, std::span<Moment> m, std::span<Moment> v, std::span<const float> grad,
             float grad_scale, const kernels::AdamWUpdate& update) {
  TROUPE_CHECK(m.size() == param.size() && v.size() == param.size() && grad.size() == param.size(),
               "one length for all four");
  const auto n = static_cast<std::int64_t>(param.size());
  kernels::parallel_blocks(n, kRunElements, kernels::threads_for(n), [&](std::int64_t begin, std::int64_t end) {
    update_run(param.data() + begin, m.data() + begin, v.data() + begin, grad.data() + begin, end - begin, grad_scale,
               update);
  });
}

}  // namespace

kernels::AdamWUpdate adamw_update(double lr, std::int64_t update, const AdamWOptions& options) {
  TROUPE_CHECK(update >= 1, "updates are counted from 1");
  const double correction1 = 1.0 - std::pow(options.beta1, static_cast<double>(update));
  const double correction2 = 1.0 - std::pow(options.beta2, static_cast<double>(update));
  return {.keep = static_cast<float>(1.0 - lr * options.weight_decay),
          .b1 = static_cast<float>(options.beta1),
          .one_minus_b1 = static_cast<float>(1.0 - options.beta1),
          .b2 = static_cast<float>(options.beta2),
          .one_minus_b2 = static_cast<float>(1.0 - options.beta2),
          .step = static_cast<float>(lr / correction1),
          .root = static_cast<float>(std::sqrt(correction2)),
          .eps = static_cast<float>(options.eps)};
}

void adamw_step(std::span<float> param, std::span<float> m, std::span<float> v, std::span<const float> grad,
                float grad_scale, const kernels::AdamWUpdate& update) {
  step_of(param, m, v, grad, grad_scale, update);
}

void adamw_step(std::span<float> param, std::span<simd::Bf16> m, std::span<simd::Bf16> v, std::span<const float> grad,
                float grad_scale, const kernels::AdamWUpdate& update) {
  step_of(param, m, v, grad, grad_scale, update);
}

double sum_of_squares(std::span<const float> x) {
  constexpr std::size_t kBlock = 1024, kBlocks = 512;
  double total = 0;
  // the threads' share of a run of blocks waits in `sums`, then is added in order; runs are added likewise, so that
  // a GPU can form them side by side (kernels/cuda/optimizer.h)
  double sums[kBlocks];
  for (std::size_t begin = 0; begin < x.size(); begin += kBlocks * kBlock) {
    const std::size_t n = std::min(kBlocks * kBlock, x.size() - begin), blocks = (n + kBlock - 1) / kBlock;
    const float* run = x.data() + begin;
    kernels::parallel(static_cast<std::int64_t>(blocks), kernels::threads_for(static_cast<std::int64_t>(n)),
                      [&](std::int64_t first, std::int64_t last) {
                        for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i)
                          sums[i] = block_square(run + i * kBlock, std::min(kBlock, n - i * kBlock));
                      });
    double run_sum = 0;
    for (std::size_t i = 0; i < blocks; ++i) run_sum += sums[i];
    total += run_sum;
  }
  return total;
}

}  // namespace troupe::model
