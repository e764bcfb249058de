#include "model/optim/sophia.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/check.h"
#include "kernels/threads.h"

namespace troupe::model {
namespace {

/// Elements that one thread takes at a time.
constexpr std::int64_t kSophiaRun = 16384;

/// The constants of one update, in f32.
struct SophiaUpdate {
  float grad_scale, keep, b1, one_minus_b1, rho, lr;
};

// Functions of their own with restricted pointers: the compiler vectorises them, which it does not in a lambda.
std::int32_t sophia_run(float* __restrict__ p_, float* __restrict__ m_, const float* __restrict__ h_,
                        const float* __restrict__ g_, std::int64_t n, const SophiaUpdate& u) {
  std::int32_t whole = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const float m = u.b1 * m_[i] + u.one_minus_b1 * (g_[i] * u.grad_scale);
    const float ratio = m / (u.rho * h_[i] + 1e-15f);
    const float step = std::min(std::max(ratio, -1.0f), 1.0f);
    m_[i] = m;
    p_[i] = p_[i] * u.keep - u.lr * step;
    whole += (ratio >= 1.0f) | (ratio <= -1.0f);
  }
  return whole;
}

void curvature_run(float* __restrict__ h_, const float* __restrict__ g_, std::int64_t n, float b2, float share) {
  for (std::int64_t i = 0; i < n; ++i) h_[i] = b2 * h_[i] + share * g_[i] * g_[i];
}

}  // namespace

std::int64_t sophia_step(std::span<float> param, std::span<float> m, std::span<const float> h,
                         std::span<const float> grad, float grad_scale, double lr, const SophiaOptions& options) {
  TROUPE_CHECK(m.size() == param.size() && h.size() == param.size() && grad.size() == param.size(),
               "one length for all four");
  const SophiaUpdate update{.grad_scale = grad_scale,
                            .keep = static_cast<float>(1.0 - lr * options.weight_decay),
                            .b1 = static_cast<float>(options.beta1),
                            .one_minus_b1 = static_cast<float>(1.0 - options.beta1),
                            .rho = static_cast<float>(options.rho),
                            .lr = static_cast<float>(lr)};
  const auto n = static_cast<std::int64_t>(param.size());
  std::atomic<std::int64_t> whole = 0;
  kernels::parallel_blocks(n, kSophiaRun, kernels::threads_for(n), [&](std::int64_t begin, std::int64_t end) {
    std::int64_t of_range = 0;
    for (std::int64_t at = begin; at < end; at += kSophiaRun) {
      of_range += sophia_run(param.data() + at, m.data() + at, h.data() + at, grad.data() + at,
                             std::min(kSophiaRun, end - at), update);
    }
    whole += of_range;
  });
  return whole;
}

double refresh_curvature(std::span<float> h, std::span<const float> grad, double factor, double beta2) {
  TROUPE_CHECK(h.size() == grad.size(), "one length for both");
  const auto b2 = static_cast<float>(beta2), share = static_cast<float>((1.0 - beta2) * factor);
  const auto n = static_cast<std::int64_t>(h.size()), runs = (n + kSophiaRun - 1) / kSophiaRun;
  // each run's sum waits here and is added in order, so that threads do not change it
  std::vector<double> sums(static_cast<std::size_t>(runs), 0.0);
  kernels::parallel(runs, kernels::threads_for(n), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t run = first; run < last; ++run) {
      const std::int64_t at = run * kSophiaRun, size = std::min(kSophiaRun, n - at);
      curvature_run(h.data() + at, grad.data() + at, size, b2, share);
      for (std::int64_t i = at; i < at + size; ++i)
        sums[static_cast<std::size_t>(run)] += h[static_cast<std::size_t>(i)];
    }
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace troupe::model
