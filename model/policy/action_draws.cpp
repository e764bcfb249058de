#include "model/policy/action_draws.h"

#include <ATen/ATen.h>

#include "base/random.h"

namespace troupe::model {

at::Tensor keyed_uniforms(std::uint64_t seed, std::span<const std::uint64_t> keys, std::int64_t width) {
  auto rows = at::empty({static_cast<std::int64_t>(keys.size()), width}, at::kFloat);
  float* out = rows.data_ptr<float>();
  for (const auto key : keys) {
    CounterRng rng(seed, rng_stream::policy_action, key);
    for (std::int64_t i = 0; i < width; ++i) *out++ = rng.uniform();
  }
  return rows;
}

}  // namespace troupe::model
