#pragma once

#include <cstdint>
#include <vector>

namespace troupe::model {

/// Noise levels of a denoising run: `steps` + 1 sigmas from noisy to clean, and the timestep that the network is given
/// at each step.
struct NoiseLevels {
  std::vector<float> sigmas;
  /// trunc(1000 * sigma)
  std::vector<std::int64_t> timesteps;

  std::int64_t steps() const { return static_cast<std::int64_t>(timesteps.size()); }
};

/// s_i = 0.999 (1 - i/steps), sigma_i = shift s_i / (1 + (shift - 1) s_i), i < steps; the last sigma is 0.
NoiseLevels shifted_levels(std::int64_t steps, double shift);

/// The same number of steps from the first sigma down to `final_noise` instead of 0:
///     sigma' = sigma (sigma_0 - final_noise) / sigma_0 + final_noise
NoiseLevels decoupled_levels(const NoiseLevels& levels, double final_noise);

}  // namespace troupe::model
