#include "model/wan/infer/noise_levels.h"

#include <c10/util/Exception.h>

namespace troupe::model {
namespace {

// In f32 the training table starts here and ends at zero; the reference spaces its steps over the f64 value of that.
constexpr double kSigmaMax = static_cast<double>(0.999F);

}  // namespace

NoiseLevels shifted_levels(std::int64_t steps, double shift) {
  TORCH_CHECK(steps >= 1, steps, " denoising steps, want at least 1");
  NoiseLevels levels;
  for (std::int64_t i = 0; i < steps; ++i) {
    const double s = kSigmaMax + static_cast<double>(i) * (-kSigmaMax / static_cast<double>(steps));
    const double sigma = shift * s / (1.0 + (shift - 1.0) * s);
    levels.sigmas.push_back(static_cast<float>(sigma));
    levels.timesteps.push_back(static_cast<std::int64_t>(sigma * 1000.0));
  }
  levels.sigmas.push_back(0.0F);
  return levels;
}

NoiseLevels decoupled_levels(const NoiseLevels& levels, double final_noise) {
  TORCH_CHECK(!levels.sigmas.empty(), "no noise levels");
  const double first = static_cast<double>(levels.sigmas.front());
  NoiseLevels moved;
  for (const float sigma : levels.sigmas) {
    // each operation in f32, as on the reference's tensor
    const float scaled = sigma * static_cast<float>(first - final_noise) / static_cast<float>(first);
    moved.sigmas.push_back(scaled + static_cast<float>(final_noise));
  }
  for (std::size_t i = 0; i + 1 < moved.sigmas.size(); ++i) {
    moved.timesteps.push_back(static_cast<std::int64_t>(moved.sigmas[i] * 1000.0F));
  }
  return moved;
}

}  // namespace troupe::model
