#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/simd.h"
#include "kernels/element.h"

namespace troupe::kernels::simd {

// Vectors of 64 bytes for the CPU kernels, written once and compiled for several instruction sets (with_best_isa). Rows
// are read and written as f32, f64 or bf16; arithmetic is f32 for f32 and bf16, f64 for f64.

/// Lanes of a vector of A: 16 floats or 8 doubles.
template <class A>
inline constexpr std::int64_t kWidth = static_cast<std::int64_t>(64 / sizeof(A));
template <class A>
using Vec = SimdVector<A, 64 / sizeof(A)>;

/// bf16 bits of a vector of floats, and the floats' bits.
using U16x16 = SimdVector<std::uint16_t, 16>;
using U32x16 = SimdVector<std::uint32_t, 16>;

/// `count` values from p, zeros behind them.
template <class A>
TROUPE_INLINE Vec<A> load(const A* p, std::int64_t count) {
  return load_vector<Vec<A>>(p, static_cast<std::size_t>(count));
}
/// bf16 widened to f32, exactly. count is at most 16.
TROUPE_INLINE Vec<float> load(const Bf16* p, std::int64_t count) {
  const auto raw = load_vector<U16x16>(p, static_cast<std::size_t>(count));
  return reinterpret_cast<Vec<float>>(__builtin_convertvector(raw, U32x16) << 16);
}

/// bf16 bits of v, rounded to nearest even; NaN stays NaN.
/// In the lower half of each lane.
TROUPE_INLINE U32x16 bf16_bits(Vec<float> v) {
  const auto bits = reinterpret_cast<U32x16>(v);
  const auto rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  const auto is_nan = reinterpret_cast<U32x16>(v != v);
  return (is_nan & ((bits >> 16) | 0x40U)) | (~is_nan & rounded);
}

/// The first `count` values to p; bf16 rounded to nearest even.
template <class A>
TROUPE_INLINE void store(A* p, Vec<A> v, std::int64_t count) {
  store_vector(p, v, static_cast<std::size_t>(count));
}
TROUPE_INLINE void store(Bf16* p, Vec<float> v, std::int64_t count) {
  store_vector(p, __builtin_convertvector(bf16_bits(v), U16x16), static_cast<std::size_t>(count));
}

/// v as it would read back after a store as T.
template <class T, class A>
TROUPE_INLINE Vec<A> rounded(Vec<A> v) {
  if constexpr (sizeof(T) == 2)
    return reinterpret_cast<Vec<float>>(bf16_bits(v) << 16);
  else
    return v;
}

/// Lanes from `count` on set to zero.
template <class A>
TROUPE_INLINE Vec<A> first_lanes(Vec<A> v, std::int64_t count) {
  for (std::int64_t i = count; i < kWidth<A>; ++i) v[i] = 0;
  return v;
}

/// Sum of all lanes.
template <class A>
TROUPE_INLINE A lane_sum(Vec<A> v) {
  // a tree, so that the order does not depend on the instruction set
  for (std::int64_t half = kWidth<A> / 2; half > 0; half /= 2) {
    for (std::int64_t i = 0; i < half; ++i) v[i] += v[i + half];
  }
  return v[0];
}

/// f(offset, count) for every vector of a row of n values; the last may be short.
/// Offsets rise by kWidth<A>; nothing is called for n = 0.
template <class A, class F>
TROUPE_INLINE void each_vector(std::int64_t n, const F& f) {
  std::int64_t i = 0;
  for (; i + kWidth<A> <= n; i += kWidth<A>) f(i, kWidth<A>);
  if (i < n) f(i, n - i);
}

/// e^x to about 2 ulp; saturates beyond +-87 in f32.
/// Cody-Waite reduction by ln 2 in two parts, then Cephes' polynomial of degree 5. Lanes are independent.
TROUPE_INLINE Vec<float> exp(Vec<float> x) {
  x = x > 87.0F ? Vec<float>{} + 87.0F : x;
  x = x < -87.0F ? Vec<float>{} - 87.0F : x;
  constexpr float kToInteger = 12582912.0F;  // 1.5 * 2^23: the sum's last mantissa bit is 1
  const Vec<float> shifted = x * 1.44269504F + kToInteger;
  const Vec<float> n = shifted - kToInteger;
  const Vec<float> r = (x - n * 0.693359375F) - n * -2.12194440e-4F;
  Vec<float> p = Vec<float>{} + 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * (r * r) + r + 1.0F;
  const auto exponent = (reinterpret_cast<U32x16>(shifted) + 127U) << 23;
  return p * reinterpret_cast<Vec<float>>(exponent);
}
TROUPE_INLINE Vec<double> exp(Vec<double> x) {
  for (std::int64_t i = 0; i < kWidth<double>; ++i) x[i] = std::exp(x[i]);
  return x;
}

}  // namespace troupe::kernels::simd
