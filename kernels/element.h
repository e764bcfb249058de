#pragma once

#include <bit>
#include <cstdint>

#include "base/namespaces.h"

namespace troupe::kernels::simd {

/// A bfloat16 as it lies in memory.
/// The upper half of an f32: 1 sign bit, 8 of exponent, 7 of mantissa. Widening is exact.
struct Bf16 {
  std::uint16_t bits;
};

/// Exactly.
inline float to_float(Bf16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }
/// Rounded to nearest, ties to even; a NaN stays one.
inline Bf16 to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  return {static_cast<std::uint16_t>(value != value ? (bits >> 16) | 0x40U : rounded)};
}

/// f32 for f32 and bf16, f64 for f64.
template <class T>
struct AccumulateOf {
  using type = float;
};
template <>
struct AccumulateOf<double> {
  using type = double;
};
/// What values of type T are computed in.
template <class T>
using Accumulate = typename AccumulateOf<T>::type;

}  // namespace troupe::kernels::simd
