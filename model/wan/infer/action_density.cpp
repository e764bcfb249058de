#include "model/wan/infer/action_density.h"

#include <ATen/ATen.h>

#include <vector>

namespace troupe::model {

ActionMoments action_moments(const at::Tensor& x, const at::Tensor& velocity, const NoiseLevels& levels,
                             const at::Tensor& step_B, double noise_level) {
  const std::vector<double> times(levels.sigmas.begin(), levels.sigmas.end());
  const auto weights = flow_row_weights(FlowMethod::sde, times, noise_level, step_B, x);
  return {flow_step_mean(x, velocity, weights), weights.std.expand_as(x)};
}

FlowSchedule schedule_of(const NoiseLevels& levels) {
  const auto steps = levels.steps();
  const auto sigmas = at::tensor(levels.sigmas, at::TensorOptions().dtype(at::kFloat)).narrow(0, 0, steps);
  return {sigmas.clone(), at::tensor(levels.timesteps).to(at::kFloat), at::ones({steps}, at::kFloat)};
}

}  // namespace troupe::model
