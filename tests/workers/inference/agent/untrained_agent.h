#pragma once

#include <ATen/ATen.h>

#include <string>

#include "model/shard/init.h"
#include "tests/support/visible.h"
#include "workers/inference/agent/agent.h"
#include "workers/rollout/published_weights.h"

namespace troupe::testing {

/// A job of reinforcement learning with a small policy.
inline JobConfig small_rl_job(const std::string& env) {
  JobConfig job;
  job.job.name = "untrained";
  job.job.kind = JobKind::rl;
  job.env.id = env;
  job.policy.hidden = {8};
  return job;
}

/// The acting units as they are before any training.
inline PublishedWeights untrained_weights(const PolicyNet& policy, std::uint64_t seed) {
  PublishedWeights weights;
  for (const UnitSpec& unit : state_units(policy.units())) {
    const auto& acting = policy.acting_units();
    if (std::find(acting.begin(), acting.end(), unit.name) == acting.end()) continue;
    const FlatLayout layout = make_flat_layout(unit.params);
    const at::Tensor flat = at::zeros({layout.padded(1)}, at::kFloat);
    fill_initial(unit, layout, seed, 0, {flat.mutable_data_ptr<float>(), static_cast<std::size_t>(flat.numel())});
    weights.views[unit.name] = views_of(layout, flat, false);
    weights.flats.push_back(flat);
  }
  return weights;
}

}  // namespace troupe::testing
