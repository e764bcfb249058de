#include "image/resize.h"

#include <algorithm>
#include <cmath>

namespace troupe::image {

AxisWeights::AxisWeights(std::int64_t in, std::int64_t out) : taps(static_cast<std::size_t>(out)) {
  const float scale = static_cast<float>(in) / static_cast<float>(out);
  const float radius = std::max(1.0f, scale), inverse = 1.0f / radius;
  for (std::int64_t i = 0; i < out; ++i) {
    const float centre = scale * (static_cast<float>(i) + 0.5f);
    const auto first = std::max<std::int64_t>(static_cast<std::int64_t>(centre - radius + 0.5f), 0);
    const std::int64_t end = std::min(static_cast<std::int64_t>(centre + radius + 0.5f), in);
    auto& t = taps[static_cast<std::size_t>(i)];
    t = {first, end - first, static_cast<std::int64_t>(weights.size())};
    float total = 0;
    for (std::int64_t j = first; j < end; ++j) {
      const float distance = std::fabs((static_cast<float>(j) - centre + 0.5f) * inverse);
      weights.push_back(distance < 1.0f ? 1.0f - distance : 0.0f);
      total += weights.back();
    }
    for (std::int64_t k = 0; k < t.count; ++k) weights[static_cast<std::size_t>(t.weight + k)] /= total;
  }
}

}  // namespace troupe::image
