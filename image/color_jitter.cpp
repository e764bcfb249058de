#include "image/color_jitter.h"

#include "image/tile_loops.h"

namespace troupe::image {

JitterFactors jitter_factors(const ColorJitter& jitter) {
  JitterFactors out{.order = {},
                    .operations = static_cast<std::int32_t>(jitter.operations),
                    .brightness = static_cast<float>(jitter.brightness_factor),
                    .contrast = static_cast<float>(jitter.contrast_factor),
                    .contrast_rest = static_cast<float>(1 - jitter.contrast_factor),
                    .saturation = static_cast<float>(jitter.saturation_factor),
                    .saturation_rest = static_cast<float>(1 - jitter.saturation_factor),
                    .turn6 = static_cast<float>(6 * jitter.hue_shift)};
  for (std::size_t i = 0; i < 4; ++i) out.order[i] = jitter.order[i];
  return out;
}

void apply_jitter(std::span<float> red, std::span<float> green, std::span<float> blue, const ColorJitter& jitter) {
  if (red.empty()) return;
  const JitterFactors factors = jitter_factors(jitter);
  const auto count = static_cast<std::int64_t>(red.size());
  for (std::int32_t i = 0; i < factors.operations; ++i) {
    float contrast_add = 0;
    if (factors.order[i] == ColorJitter::contrast) {
      double sums[8] = {}, total = 0;
      loops::gray(red.data(), green.data(), blue.data(), count, sums);
      for (const double s : sums) total += s;
      contrast_add = static_cast<float>(total / static_cast<double>(count)) * factors.contrast_rest;
    }
    loops::jitter(factors, factors.order[i], contrast_add, count, red.data(), green.data(), blue.data());
  }
}

}  // namespace troupe::image
