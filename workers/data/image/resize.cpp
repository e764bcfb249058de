#include "workers/data/image/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "workers/data/image/vector_clones.h"

namespace troupe {

namespace {

// Four floats at once: one RGB pixel and a lane that nobody looks at. Baseline SSE and NEON both have it.
typedef float Float4 __attribute__((vector_size(16)));
typedef double Double4 __attribute__((vector_size(32)));

inline Float4 load4(const float* p) {
  Float4 v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// x * w + sum with one rounding, as the fused multiply-add of the references gives it. Two roundings leave a flat
// area one ulp short of its level, which the truncation to bytes then turns into a whole level. The product of two
// floats is exact in double, so this needs no instruction set and gives the same bits everywhere.
inline float fused(float x, double w, float sum) {
  return static_cast<float>(static_cast<double>(x) * w + static_cast<double>(sum));
}

TROUPE_VECTOR_CLONES void to_floats(const std::uint8_t* __restrict__ bytes, float* __restrict__ out,
                                    std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(bytes[i]) / 255.0f;
}

TROUPE_VECTOR_CLONES void scale_row(const float* __restrict__ from, float weight, float* __restrict__ out,
                                    std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = from[i] * weight;
}

TROUPE_VECTOR_CLONES void add_row(const float* __restrict__ from, double weight, float* __restrict__ out,
                                  std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = fused(from[i], weight, out[i]);
}

/// Output columns of one row; every load reads four floats, so `source` has one more than its pixels need.
TROUPE_VECTOR_CLONES void mix_columns(const float* source, const std::vector<ResizeTaps>& taps, const float* weights,
                                      float* out) {
  for (const ResizeTaps& t : taps) {
    const float* pixel = source + 3 * t.first;
    const float* weight = weights + t.weight;
    Float4 sum = load4(pixel) * weight[0];
    for (std::int64_t k = 1; k < t.count; ++k) {  // fused(), four wide
      const Double4 exact = __builtin_convertvector(load4(pixel + 3 * k), Double4) * static_cast<double>(weight[k]);
      sum = __builtin_convertvector(exact + __builtin_convertvector(sum, Double4), Float4);
    }
    std::memcpy(out, &sum, sizeof sum);
    out += 3;
  }
}

}  // namespace

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

AntialiasResize::AntialiasResize(std::int64_t in_height, std::int64_t in_width, std::int64_t out_height,
                                 std::int64_t out_width)
    : in_height_(in_height),
      in_width_(in_width),
      out_height_(out_height),
      out_width_(out_width),
      columns_(in_width, out_width),
      rows_(in_height, out_height),
      // one float more than the pixels need: the idle fourth lane of the last pixel
      source_row_(static_cast<std::size_t>(3 * in_width + 1)),
      narrowed_(static_cast<std::size_t>(in_height * 3 * out_width + 1)),
      mixed_(static_cast<std::size_t>(3 * out_width)) {}

void AntialiasResize::run(const Rgb8View& source, std::span<float> red, std::span<float> green, std::span<float> blue) {
  const std::int64_t row_floats = 3 * out_width_;
  for (std::int64_t y = 0; y < in_height_; ++y) {
    to_floats(source.row(y), source_row_.data(), 3 * in_width_);
    mix_columns(source_row_.data(), columns_.taps, columns_.weights.data(), narrowed_.data() + y * row_floats);
  }
  for (std::int64_t y = 0; y < out_height_; ++y) {
    const ResizeTaps& t = rows_.taps[static_cast<std::size_t>(y)];
    for (std::int64_t k = 0; k < t.count; ++k) {
      const float* from = narrowed_.data() + (t.first + k) * row_floats;
      const float weight = rows_.weights[static_cast<std::size_t>(t.weight + k)];
      if (k == 0) scale_row(from, weight, mixed_.data(), row_floats);
      else add_row(from, static_cast<double>(weight), mixed_.data(), row_floats);
    }
    const float* __restrict__ mixed = mixed_.data();
    float* __restrict__ r = red.data() + y * out_width_;
    float* __restrict__ g = green.data() + y * out_width_;
    float* __restrict__ b = blue.data() + y * out_width_;
    for (std::int64_t x = 0; x < out_width_; ++x) {
      r[x] = mixed[3 * x];
      g[x] = mixed[3 * x + 1];
      b[x] = mixed[3 * x + 2];
    }
  }
}

}  // namespace troupe
