#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace troupe::image {

// The arithmetic of one pixel of the image chain, the same on CPU and GPU. Every file that includes this is compiled
// without contraction (-ffp-contract=off, nvcc --fmad=false), so that a * b + c rounds twice wherever it stands;
// fused() is the one operation that rounds once. Values are finite and the sign of a zero means nothing.

/// Integer coefficients of one matrix and range, 13 fractional bits.
/// luma_offset in units of 1/8 level; cy luma, crv red from V, cgu and cgv green, cbu blue from U, times 2^13.
struct YuvCoefficients {
  std::int32_t luma_offset, cy, crv, cgu, cgv, cbu;
};

/// Rounded half up from swscale's 16-bit tables; full range scales chroma by 224/255.
TROUPE_HOST_DEVICE YuvCoefficients yuv_coefficients(bool bt709, bool full_range) {
  if (bt709) {
    return full_range ? YuvCoefficients{0, 8192, 12901, -1534, -3835, 15201}
                      : YuvCoefficients{128, 9539, 14686, -1747, -4366, 17305};
  }
  return full_range ? YuvCoefficients{0, 8192, 11485, -2819, -5850, 14516}
                    : YuvCoefficients{128, 9539, 13075, -3209, -6660, 16525};
}

/// Parts of level = clip(luma + chroma): 8-bit samples in, levels of 0 to 255 out before clipping. The shifts round
/// down, as swscale's do.
TROUPE_HOST_DEVICE std::int32_t clip_byte(std::int32_t v) { return v < 0 ? 0 : v > 255 ? 255 : v; }
TROUPE_HOST_DEVICE std::int32_t luma_term(std::int32_t y, const YuvCoefficients& c) {
  return ((8 * y - c.luma_offset) * c.cy) >> 16;
}
TROUPE_HOST_DEVICE std::int32_t red_term(std::int32_t v, const YuvCoefficients& c) {
  return ((8 * v - 1024) * c.crv) >> 16;
}
TROUPE_HOST_DEVICE std::int32_t green_term(std::int32_t u, std::int32_t v, const YuvCoefficients& c) {
  return (((8 * u - 1024) * c.cgu) >> 16) + (((8 * v - 1024) * c.cgv) >> 16);
}
TROUPE_HOST_DEVICE std::int32_t blue_term(std::int32_t u, const YuvCoefficients& c) {
  return ((8 * u - 1024) * c.cbu) >> 16;
}

/// A level in [0, 1], correctly rounded.
TROUPE_HOST_DEVICE float unit_of_level(std::int32_t level) { return static_cast<float>(level) / 255.0f; }

/// x * w + sum with one rounding, as the references' resize has it. Two roundings leave a flat area one ulp short of
/// its level, which the truncation to bytes then turns into a whole level.
TROUPE_HOST_DEVICE float fused(float x, float w, float sum) {
#if defined(__CUDA_ARCH__)
  return __fmaf_rn(x, w, sum);
#else
  return __builtin_fmaf(x, w, sum);
#endif
}

/// Comparisons without NaN handling; gray is BT.601's luma with torchvision's digits.
TROUPE_HOST_DEVICE float lower(float a, float b) { return a < b ? a : b; }
TROUPE_HOST_DEVICE float higher(float a, float b) { return a > b ? a : b; }
TROUPE_HOST_DEVICE float clamp01(float x) { return lower(higher(x, 0.0f), 1.0f); }
TROUPE_HOST_DEVICE float magnitude(float x) { return __builtin_fabsf(x); }
TROUPE_HOST_DEVICE float gray_of(float r, float g, float b) { return 0.2989f * r + 0.587f * g + 0.114f * b; }

/// The blend of brightness (add 0), contrast (add mean * (1 - c)) and saturation (add gray * (1 - s)).
TROUPE_HOST_DEVICE float blend(float x, float keep, float add) { return clamp01(x * keep + add); }

/// Turns the hue by turn6 / 6 turns, |turn6| <= 3: RGB to hexcone HSV, H + h, and back without branches:
///     R, G, B = V - C * clamp(f), f = 2 - |6H - 3|, |6H - 2| - 1, |6H - 4| - 1
/// In place; the three inputs lie in [0, 1], and so do the results up to rounding.
TROUPE_HOST_DEVICE void shift_hue(float& red, float& green, float& blue, float turn6) {
  const float r = red, g = green, b = blue;
  const float high = higher(r, higher(g, b)), low = lower(r, lower(g, b));
  const float chroma = high - low;
  const float inverse = 1.0f / (chroma > 0.0f ? chroma : 1.0f);
  // sextant form; red wins over green over blue where they tie, and gray (chroma 0) has hue 0
  const bool is_red = high == r, is_green = high == g;
  const float difference = is_red ? g - b : (is_green ? b - r : r - g);
  float h6 = (is_red ? 0.0f : (is_green ? 2.0f : 4.0f)) + difference * inverse;
  h6 += turn6;
  h6 = h6 < 0.0f ? h6 + 6.0f : h6;
  h6 = h6 >= 6.0f ? h6 - 6.0f : h6;
  red = high - chroma * clamp01(2.0f - magnitude(h6 - 3.0f));
  green = high - chroma * clamp01(magnitude(h6 - 2.0f) - 1.0f);
  blue = high - chroma * clamp01(magnitude(h6 - 4.0f) - 1.0f);
}

/// x * 255, truncated as the references do. x lies in [0, 1] up to rounding.
TROUPE_HOST_DEVICE std::int32_t byte_of_unit(float x) {
  return static_cast<std::int32_t>(lower(higher(x * 255.0f, 0.0f), 255.0f));
}

/// One jitter as the loops take it; the order is that of the list, codes 0 brightness, 1 contrast, 2 saturation, 3 hue.
/// `operations` of `order` count. contrast_rest and saturation_rest are 1 minus the factor, rounded once to f32;
/// turn6 is the hue's turn times 6.
struct JitterFactors {
  std::uint8_t order[4];
  std::int32_t operations;
  float brightness, contrast, contrast_rest, saturation, saturation_rest, turn6;
};

/// Operation `code` on one pixel. `contrast_add` = mean gray of the frame at that point * contrast_rest.
/// In place, r, g, b in [0, 1]. Source: torchvision's ColorJitter and adjust_* functions.
TROUPE_HOST_DEVICE void jitter_pixel(const JitterFactors& j, int code, float contrast_add, float& r, float& g,
                                     float& b) {
  if (code == 3) {
    shift_hue(r, g, b, j.turn6);
    return;
  }
  const float keep = code == 0 ? j.brightness : code == 1 ? j.contrast : j.saturation;
  const float add = code == 0 ? 0.0f : code == 1 ? contrast_add : gray_of(r, g, b) * j.saturation_rest;
  r = blend(r, keep, add);
  g = blend(g, keep, add);
  b = blend(b, keep, add);
}

}  // namespace troupe::image
