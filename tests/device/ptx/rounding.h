#pragma once

#include <cmath>
#include <cstdint>

#include "tests/device/ptx/lanes.h"

namespace troupe::device::ptx {

/// `.rn`, `.rz`, `.rm`, `.rp`. Source: PTX ISA 9.0, "Rounding Modifiers".
enum class Rounding : std::uint8_t { nearest, zero, down, up };

/// The value high + low, exactly: what a double cannot hold of a sum.
struct ExactSum {
  double high = 0, low = 0;
};
inline ExactSum exact_sum(double a, double b) {
  const double high = a + b, part = high - a;
  const double low = (a - (high - part)) + (b - part);
  return {high, std::isfinite(high) ? low : 0.0};
}

/// The sum cut to a double whose last bit is set if anything was lost: rounding it once more to at most 51 bits is then
/// the same as rounding the exact value (Boldo and Melquiond 2008).
inline double to_odd(ExactSum sum) {
  auto bits = bits_as<std::uint64_t>(sum.high);
  if (sum.low == 0) return sum.high;
  if ((sum.low < 0) != (sum.high < 0)) --bits;
  return bits_as<double>(bits | 1);
}

/// Takes `.rn`, `.rz`, `.rm` or `.rp`; without one it is nearest.
Rounding take_rounding(Decoder& decoder);

/// A double to f32; nearest is to even.
inline float to_float(double value, Rounding rounding) {
  const auto nearest = static_cast<float>(value);
  const double back = nearest;
  if (rounding == Rounding::zero && std::fabs(back) > std::fabs(value)) return std::nextafter(nearest, 0.0f);
  if (rounding == Rounding::down && back > value) return std::nextafter(nearest, -INFINITY);
  if (rounding == Rounding::up && back < value) return std::nextafter(nearest, INFINITY);
  return nearest;
}

/// A double, itself cut to odd, to a f32 cut to odd.
inline float to_odd_float(double value) {
  const float cut = to_float(value, Rounding::zero);
  if (static_cast<double>(cut) == value || !std::isfinite(value)) return cut;
  return bits_as<float>(bits_as<std::uint32_t>(cut) | 1);
}

inline constexpr std::uint32_t kNanBits = 0x7FFFFFFF;

/// What every f32 instruction returns for a NaN. Source: PTX ISA 9.0, "Floating Point Instructions".
inline float canonical(float x) { return x != x ? bits_as<float>(kNanBits) : x; }

/// Subnormal values become zeros of their sign.
inline float flushed(float x) {
  const auto bits = bits_as<std::uint32_t>(x);
  return bits_as<float>((bits & 0x7F800000) == 0 ? bits & 0x80000000 : bits);
}
template <bool kFlush>
float input(float x) {
  return kFlush ? flushed(x) : x;
}
template <bool kFlush, bool kSaturate>
float output(float x) {
  if (kFlush) x = flushed(x);
  if (kSaturate) return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f;  // NaN too becomes +0
  return canonical(x);
}

/// f16 and bf16 bits to f32, exactly.
inline float from_half(std::uint16_t half) {
  const std::uint32_t magnitude = static_cast<std::uint32_t>(half & 0x7FFF) << 13, sign = (half & 0x8000U) << 16;
  const float scaled = bits_as<float>(magnitude) * 0x1p112f;
  const bool is_special = (half & 0x7C00) == 0x7C00;
  return bits_as<float>((is_special ? magnitude | 0x7F800000 : bits_as<std::uint32_t>(scaled)) | sign);
}
inline float from_bfloat(std::uint16_t bits) { return bits_as<float>(static_cast<std::uint32_t>(bits) << 16); }

/// f32 to f16 and bf16, to nearest even; NaN is 0x7FFF.
inline std::uint16_t to_half(float x) {
  const auto all = bits_as<std::uint32_t>(x);
  const std::uint32_t bits = all & 0x7FFFFFFF, sign = all >> 16 & 0x8000;
  const std::uint32_t normal = (bits + 0xFFF + (bits >> 13 & 1) - (112U << 23)) >> 13;
  // one half has the unit of subnormal f16 in its last place
  const std::uint32_t subnormal = bits_as<std::uint32_t>(bits_as<float>(bits) + 0.5f) - 0x3F000000;
  const std::uint32_t finite = bits < 0x38800000 ? subnormal : normal;
  const std::uint32_t rounded = bits >= 0x477FF000 ? 0x7C00 : finite;
  return static_cast<std::uint16_t>(bits > 0x7F800000 ? 0x7FFF : (rounded | sign));
}
inline std::uint16_t to_bfloat(float x) {
  const auto bits = bits_as<std::uint32_t>(x);
  const std::uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
  return static_cast<std::uint16_t>((bits & 0x7FFFFFFF) > 0x7F800000 ? 0x7FFF : rounded);
}

/// The 16-bit formats, for templates over both.
struct Half {
  static float from(std::uint16_t bits) { return from_half(bits); }
  static std::uint16_t to(float x) { return to_half(x); }
};
struct Bfloat {
  static float from(std::uint16_t bits) { return from_bfloat(bits); }
  static std::uint16_t to(float x) { return to_bfloat(x); }
};

/// f32 to f16 or bf16 in any mode.
template <class Format>
std::uint16_t to_16_bits(float x, Rounding rounding) {
  const std::uint16_t nearest = Format::to(x);
  const float back = Format::from(nearest);
  const bool too_high = back > x, too_low = back < x;
  const bool wrong_side = (rounding == Rounding::zero && std::fabs(back) > std::fabs(x)) ||
                          (rounding == Rounding::down && too_high) || (rounding == Rounding::up && too_low);
  if (!wrong_side) return nearest;
  if (back == 0) return static_cast<std::uint16_t>(too_high ? 0x8001 : 0x0001);
  // one step towards the other side: the magnitude shrinks when the rounded value lies beyond x
  const bool shrinks = (too_high && back > 0) || (too_low && back < 0);
  return static_cast<std::uint16_t>(shrinks ? nearest - 1 : nearest + 1);
}

}  // namespace troupe::device::ptx
