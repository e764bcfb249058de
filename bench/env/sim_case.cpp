#include "bench/env/sim_case.h"

#include "base/random.h"
#include "bench/support/failures.h"
#include "env/registry/registry.h"

namespace troupe::bench {

std::shared_ptr<const EnvFactory> must_make(const std::string& id, const EnvOptions& options) {
  return must(make_env_factory(id, options));
}

ActionTable::ActionTable(const EnvSpec& spec, std::int64_t num_envs) : num_envs_(num_envs), size_(spec.action.size) {
  CounterRng rng(1, 0, 0);
  for (std::int64_t row = 0; row < kSteps * num_envs; ++row) {
    if (spec.action.is_discrete())
      values_.push_back(static_cast<float>(rng.below(static_cast<std::uint32_t>(spec.action.choices))));
    for (std::size_t a = 0; a < spec.action.low.size(); ++a)
      values_.push_back(static_cast<float>(rng.uniform(spec.action.low[a], spec.action.high[a])));
  }
}

std::span<const float> ActionTable::at(std::int64_t step) const {
  const auto width = static_cast<std::size_t>(num_envs_ * size_);
  return std::span(values_).subspan(static_cast<std::size_t>(step % kSteps) * width, width);
}

std::span<const float> ActionTable::at(std::int64_t step, std::int64_t env) const {
  return at(step).subspan(static_cast<std::size_t>(env * size_), static_cast<std::size_t>(size_));
}

}  // namespace troupe::bench
