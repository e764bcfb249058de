#include "model/optim/moving_average.h"

#include "base/check.h"
#include "kernels/threads.h"

namespace troupe::model {
namespace {

/// Elements that one thread takes at a time.
constexpr std::int64_t kAverageRun = 16384;

void average_run(float* __restrict__ a, const float* __restrict__ x, std::int64_t n, float keep, float share) {
  for (std::int64_t i = 0; i < n; ++i) a[i] = keep * a[i] + share * x[i];
}

}  // namespace

void move_average(std::span<float> average, std::span<const float> x, double tau) {
  TROUPE_CHECK(average.size() == x.size(), "one length for both");
  const auto keep = static_cast<float>(1.0 - tau), share = static_cast<float>(tau);
  const auto n = static_cast<std::int64_t>(average.size());
  kernels::parallel_blocks(n, kAverageRun, kernels::threads_for(n), [&](std::int64_t begin, std::int64_t end) {
    average_run(average.data() + begin, x.data() + begin, end - begin, keep, share);
  });
}

}  // namespace troupe::model
