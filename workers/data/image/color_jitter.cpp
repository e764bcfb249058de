#include "workers/data/image/color_jitter.h"

#include <algorithm>
#include <cstddef>

#include "workers/data/image/vector_clones.h"

namespace troupe {

namespace {

struct Planes {
  float* __restrict__ r;
  float* __restrict__ g;
  float* __restrict__ b;
  std::size_t count;
};

inline float clamp01(float x) { return std::min(std::max(x, 0.0f), 1.0f); }
inline float gray_of(float r, float g, float b) { return 0.2989f * r + 0.587f * g + 0.114f * b; }

TROUPE_VECTOR_CLONES void brightness(const Planes& p, float factor) {
  for (std::size_t i = 0; i < p.count; ++i) {
    p.r[i] = clamp01(p.r[i] * factor);
    p.g[i] = clamp01(p.g[i] * factor);
    p.b[i] = clamp01(p.b[i] * factor);
  }
}

TROUPE_VECTOR_CLONES double mean_gray(const Planes& p) {
  // eight running sums: wide enough for the vector unit, and the same bits wherever it is compiled
  double sums[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= p.count; i += 8) {
    for (std::size_t k = 0; k < 8; ++k) sums[k] += static_cast<double>(gray_of(p.r[i + k], p.g[i + k], p.b[i + k]));
  }
  for (; i < p.count; ++i) sums[0] += static_cast<double>(gray_of(p.r[i], p.g[i], p.b[i]));
  double total = 0;
  for (const double s : sums) total += s;
  return total / static_cast<double>(p.count);
}

TROUPE_VECTOR_CLONES void contrast(const Planes& p, double factor) {
  const float keep = static_cast<float>(factor);
  const float add = static_cast<float>(mean_gray(p)) * static_cast<float>(1 - factor);
  for (std::size_t i = 0; i < p.count; ++i) {
    p.r[i] = clamp01(p.r[i] * keep + add);
    p.g[i] = clamp01(p.g[i] * keep + add);
    p.b[i] = clamp01(p.b[i] * keep + add);
  }
}

TROUPE_VECTOR_CLONES void saturation(const Planes& p, double factor) {
  const float keep = static_cast<float>(factor), rest = static_cast<float>(1 - factor);
  for (std::size_t i = 0; i < p.count; ++i) {
    const float add = gray_of(p.r[i], p.g[i], p.b[i]) * rest;
    p.r[i] = clamp01(p.r[i] * keep + add);
    p.g[i] = clamp01(p.g[i] * keep + add);
    p.b[i] = clamp01(p.b[i] * keep + add);
  }
}

/// V - C * clamp(min(k, 4 - k), 0, 1), k = (n + 6H) mod 6: the hexcone without branches.
inline float hexcone(float value, float chroma, float h6, float n) {
  float k = n + h6;
  k = k >= 6.0f ? k - 6.0f : k;
  return clamp01(value - chroma * clamp01(std::min(k, 4.0f - k)));
}

TROUPE_VECTOR_CLONES void hue(const Planes& p, double shift) {
  const float turn6 = static_cast<float>(6 * shift);
  for (std::size_t i = 0; i < p.count; ++i) {
    const float r = p.r[i], g = p.g[i], b = p.b[i];
    const float high = std::max(r, std::max(g, b)), low = std::min(r, std::min(g, b));
    const float chroma = high - low;
    const float inverse = 1.0f / (chroma > 0.0f ? chroma : 1.0f);
    // sextant form; red wins over green over blue where they tie, and gray (chroma 0) has hue 0
    const float of_red = (g - b) * inverse, of_green = 2.0f + (b - r) * inverse, of_blue = 4.0f + (r - g) * inverse;
    float h6 = high == r ? of_red : (high == g ? of_green : of_blue);
    h6 += turn6;
    h6 = h6 < 0.0f ? h6 + 6.0f : h6;
    h6 = h6 >= 6.0f ? h6 - 6.0f : h6;
    p.r[i] = hexcone(high, chroma, h6, 5.0f);
    p.g[i] = hexcone(high, chroma, h6, 3.0f);
    p.b[i] = hexcone(high, chroma, h6, 1.0f);
  }
}

}  // namespace

void apply_jitter(std::span<float> red, std::span<float> green, std::span<float> blue, const ColorJitter& jitter) {
  const Planes planes{red.data(), green.data(), blue.data(), red.size()};
  if (planes.count == 0) return;
  for (std::int64_t i = 0; i < jitter.operations; ++i) {
    switch (jitter.order[static_cast<std::size_t>(i)]) {
      case ColorJitter::brightness:
        brightness(planes, static_cast<float>(jitter.brightness_factor));
        break;
      case ColorJitter::contrast:
        contrast(planes, jitter.contrast_factor);
        break;
      case ColorJitter::saturation:
        saturation(planes, jitter.saturation_factor);
        break;
      default:
        hue(planes, jitter.hue_shift);
        break;
    }
  }
}

}  // namespace troupe
