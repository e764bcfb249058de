#pragma once

#include <cstdint>
#include <cstring>

#include "base/simd.h"
#include "image/pixel.h"

/// Loops over rows, always inlined into functions compiled for one instruction set (tile_rows.cpp), where the
/// compiler turns them into vector code. Plain pointers that do not overlap; counts in pixels.
namespace troupe::image::loops {

/// True when the whole build targets a machine with fused multiply-add: no emulation is needed then.
#if defined(__FP_FAST_FMAF)
inline constexpr bool kFastFma = true;
#else
inline constexpr bool kFastFma = false;
#endif

/// x * w + sum with one rounding. Without the instruction: the product is exact in double, the sum is rounded to odd
/// there, and an odd double rounds to the float that the exact sum rounds to (Boldo and Melquiond, "Emulation of
/// FMA", 2008).
template <bool kHasFma>
TROUPE_INLINE float fused(float x, float w, float sum) {
  if constexpr (kHasFma || kFastFma) return __builtin_fmaf(x, w, sum);
  const double product = static_cast<double>(x) * static_cast<double>(w), added = static_cast<double>(sum);
  const double total = product + added, back = total - product;
  const double error = (product - (total - back)) + (added - back);
  std::int64_t bits = 0;
  std::memcpy(&bits, &total, sizeof bits);
  const std::int64_t towards = (error > 0) == (total > 0) ? 1 : -1;
  bits += ((error != 0) & ((bits & 1) == 0)) ? towards : 0;
  double odd = 0;
  std::memcpy(&odd, &bits, sizeof odd);
  return static_cast<float>(odd);
}

/// unit_of_level. With the instruction: level * (high + low), where high + low is 1/255 in twice the precision; equal
/// for all 256 levels (a test goes through them).
template <bool kHasFma>
TROUPE_INLINE float unit(std::int32_t level) {
  if constexpr (!kHasFma) return unit_of_level(level);
  constexpr float kHigh = 1.0f / 255.0f;
  constexpr float kLow = static_cast<float>(1.0 / 255.0 - static_cast<double>(kHigh));
  const auto value = static_cast<float>(level);
  return __builtin_fmaf(value, kHigh, value * kLow);
}

/// TileRows::chroma: terms of one row of 2x2 pixel blocks; each is written to both columns of its block. `u` and `v`
/// hold `blocks` samples, the outputs 2 * blocks.
TROUPE_INLINE void chroma(const std::uint8_t* __restrict__ u, const std::uint8_t* __restrict__ v, std::int64_t blocks,
                          const YuvCoefficients& coefficients, std::int32_t* __restrict__ red,
                          std::int32_t* __restrict__ green, std::int32_t* __restrict__ blue) {
  const YuvCoefficients c = coefficients;
  for (std::int64_t x = 0; x < blocks; ++x) {
    red[2 * x] = red[2 * x + 1] = red_term(v[x], c);
    green[2 * x] = green[2 * x + 1] = green_term(u[x], v[x], c);
    blue[2 * x] = blue[2 * x + 1] = blue_term(u[x], c);
  }
}

/// TileRows::from_yuv: `width` pixels as values in [0, 1]; the terms begin at the first pixel's column.
template <bool kHasFma>
TROUPE_INLINE void from_yuv(const std::uint8_t* __restrict__ luma, const std::int32_t* __restrict__ red_terms,
                            const std::int32_t* __restrict__ green_terms, const std::int32_t* __restrict__ blue_terms,
                            std::int64_t width, const YuvCoefficients& coefficients, float* __restrict__ red,
                            float* __restrict__ green, float* __restrict__ blue) {
  const YuvCoefficients c = coefficients;
  for (std::int64_t x = 0; x < width; ++x) {
    const std::int32_t y = luma_term(luma[x], c);
    red[x] = unit<kHasFma>(clip_byte(y + red_terms[x]));
    green[x] = unit<kHasFma>(clip_byte(y + green_terms[x]));
    blue[x] = unit<kHasFma>(clip_byte(y + blue_terms[x]));
  }
}

/// TileRows::from_rgb: packed bytes to three planes of values in [0, 1].
template <bool kHasFma>
TROUPE_INLINE void from_rgb(const std::uint8_t* __restrict__ rgb, std::int64_t width, float* __restrict__ red,
                            float* __restrict__ green, float* __restrict__ blue) {
  for (std::int64_t x = 0; x < width; ++x) {
    red[x] = unit<kHasFma>(rgb[3 * x]);
    green[x] = unit<kHasFma>(rgb[3 * x + 1]);
    blue[x] = unit<kHasFma>(rgb[3 * x + 2]);
  }
}

/// TileRows::mix: out[i] = rows[0][i] * weights[0], then fused with the other rows in ascending order. `rows` are
/// `taps` pointers to `count` floats.
template <bool kHasFma>
TROUPE_INLINE void mix(const float* const* rows, const float* weights, std::int64_t taps, std::int64_t count,
                       float* __restrict__ out) {
  const float* __restrict__ first = rows[0];
  const float first_weight = weights[0];
  if (taps == 1) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = first[i] * first_weight;
    return;
  }
  const float* __restrict__ second = rows[1];
  const float second_weight = weights[1];
  for (std::int64_t i = 0; i < count; ++i) out[i] = fused<kHasFma>(second[i], second_weight, first[i] * first_weight);
  for (std::int64_t k = 2; k < taps; ++k) {
    const float* __restrict__ row = rows[k];
    const float weight = weights[k];
    for (std::int64_t i = 0; i < count; ++i) out[i] = fused<kHasFma>(row[i], weight, out[i]);
  }
}

/// TileRows::jitter: operation `code` (ColorJitter::Operation) of `width` pixels, in place. `contrast_add` is
/// mean(gray) * (1 - c) of the whole frame; only contrast uses it.
TROUPE_INLINE void jitter(const JitterFactors& factors, int code, float contrast_add, std::int64_t width,
                          float* __restrict__ red, float* __restrict__ green, float* __restrict__ blue) {
  const JitterFactors f = factors;
  const auto each = [&](int operation) TROUPE_LAMBDA {
    for (std::int64_t x = 0; x < width; ++x) {
      float r = red[x], g = green[x], b = blue[x];
      jitter_pixel(f, operation, contrast_add, r, g, b);
      red[x] = r;
      green[x] = g;
      blue[x] = b;
    }
  };
  // constants, so that each loop is compiled without the choice
  if (code == 0)
    each(0);
  else if (code == 1)
    each(1);
  else if (code == 2)
    each(2);
  else
    each(3);
}

/// TileRows::gray: eight partial sums in double, pixel x in sums[x % 8].
TROUPE_INLINE void gray(const float* __restrict__ red, const float* __restrict__ green, const float* __restrict__ blue,
                        std::int64_t width, double* __restrict__ sums) {
  std::int64_t x = 0;
  double kept[8];
  for (int k = 0; k < 8; ++k) kept[k] = sums[k];
  for (; x + 8 <= width; x += 8) {
    for (int k = 0; k < 8; ++k) kept[k] += static_cast<double>(gray_of(red[x + k], green[x + k], blue[x + k]));
  }
  for (int k = 0; k < 8; ++k) sums[k] = kept[k];
  for (; x < width; ++x) sums[x % 8] += static_cast<double>(gray_of(red[x], green[x], blue[x]));
}

/// Truncates to bytes; each pixel becomes one word 0x00BBGGRR, from which the packed bytes are made.
TROUPE_INLINE void words(const float* __restrict__ red, const float* __restrict__ green, const float* __restrict__ blue,
                         std::int64_t width, std::uint32_t* __restrict__ pixels) {
  for (std::int64_t x = 0; x < width; ++x) {
    pixels[x] = static_cast<std::uint32_t>(byte_of_unit(red[x])) |
                static_cast<std::uint32_t>(byte_of_unit(green[x])) << 8 |
                static_cast<std::uint32_t>(byte_of_unit(blue[x])) << 16;
  }
}

}  // namespace troupe::image::loops
