#include "model/optim/moving_average.h"

#include "base/check.h"

namespace troupe::model {

void move_average(std::span<float> average, std::span<const float> x, double tau) {
  TROUPE_CHECK(average.size() == x.size(), "one length for both");
  const auto keep = static_cast<float>(1.0 - tau), share = static_cast<float>(tau);
  float* __restrict__ a = average.data();
  const float* __restrict__ b = x.data();
  for (std::size_t i = 0; i < average.size(); ++i) a[i] = keep * a[i] + share * b[i];
}

}  // namespace troupe::model
