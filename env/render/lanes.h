#pragma once

// A vector of floats and its mask for the instruction set that the including file is compiled for. Everything has
// internal linkage: three files include this with three meanings. Only operations that round alike on all of them.
#include <cstdint>
#include <cstring>

#include "base/simd.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace troupe::env {
namespace {

#if defined(__AVX512F__)

constexpr std::int64_t kLanes = 16;
using Floats = SimdVector<float, kLanes>;
using Ints = SimdVector<std::int32_t, kLanes>;
using Mask = __mmask16;
TROUPE_INLINE Mask less(Floats a, Floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
TROUPE_INLINE Mask both(Mask a, Mask b) { return static_cast<Mask>(a & b); }
TROUPE_INLINE Mask either(Mask a, Mask b) { return static_cast<Mask>(a | b); }
TROUPE_INLINE bool any(Mask m) { return m != 0; }
TROUPE_INLINE Floats select(Mask m, Floats a, Floats b) { return _mm512_mask_blend_ps(m, b, a); }
TROUPE_INLINE Ints select(Mask m, Ints a, Ints b) {
  return reinterpret_cast<Ints>(select(m, reinterpret_cast<Floats>(a), reinterpret_cast<Floats>(b)));
}
TROUPE_INLINE Floats root(Floats a) { return _mm512_sqrt_ps(a); }

#elif defined(__AVX2__)

constexpr std::int64_t kLanes = 8;
using Floats = SimdVector<float, kLanes>;
using Ints = SimdVector<std::int32_t, kLanes>;
using Mask = Floats;
TROUPE_INLINE Mask less(Floats a, Floats b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
TROUPE_INLINE Mask both(Mask a, Mask b) { return _mm256_and_ps(a, b); }
TROUPE_INLINE Mask either(Mask a, Mask b) { return _mm256_or_ps(a, b); }
TROUPE_INLINE bool any(Mask m) { return _mm256_movemask_ps(m) != 0; }
TROUPE_INLINE Floats select(Mask m, Floats a, Floats b) { return _mm256_blendv_ps(b, a, m); }
TROUPE_INLINE Ints select(Mask m, Ints a, Ints b) {
  return reinterpret_cast<Ints>(select(m, reinterpret_cast<Floats>(a), reinterpret_cast<Floats>(b)));
}
TROUPE_INLINE Floats root(Floats a) { return _mm256_sqrt_ps(a); }

#else

constexpr std::int64_t kLanes = 4;
using Floats = SimdVector<float, kLanes>;
using Ints = SimdVector<std::int32_t, kLanes>;
using Mask = Ints;
TROUPE_INLINE Mask less(Floats a, Floats b) { return a < b; }
TROUPE_INLINE Mask both(Mask a, Mask b) { return a & b; }
TROUPE_INLINE Mask either(Mask a, Mask b) { return a | b; }
TROUPE_INLINE bool any(Mask m) {
  std::uint64_t halves[2];
  std::memcpy(halves, &m, sizeof(halves));
  return (halves[0] | halves[1]) != 0;
}
TROUPE_INLINE Ints select(Mask m, Ints a, Ints b) { return (m & a) | (~m & b); }
TROUPE_INLINE Floats select(Mask m, Floats a, Floats b) {
  return reinterpret_cast<Floats>(select(m, reinterpret_cast<Ints>(a), reinterpret_cast<Ints>(b)));
}
TROUPE_INLINE Floats root(Floats a) {
  for (std::int64_t i = 0; i < kLanes; ++i) a[i] = __builtin_sqrtf(a[i]);
  return a;
}

#endif

/// The same number in every lane; larger, smaller and magnitude work lane by lane.
TROUPE_INLINE Floats all(float a) { return Floats{} + a; }
TROUPE_INLINE Floats larger(Floats a, Floats b) { return select(less(a, b), b, a); }
TROUPE_INLINE Floats smaller(Floats a, Floats b) { return select(less(b, a), b, a); }
TROUPE_INLINE Floats magnitude(Floats a) { return reinterpret_cast<Floats>(reinterpret_cast<Ints>(a) & 0x7FFFFFFF); }
/// b with a's sign.
TROUPE_INLINE Floats with_sign(Floats a, Floats b) {
  return reinterpret_cast<Floats>((reinterpret_cast<Ints>(a) & static_cast<std::int32_t>(0x80000000U)) |
                                  (reinterpret_cast<Ints>(b) & 0x7FFFFFFF));
}
/// Towards zero.
TROUPE_INLINE Ints to_whole(Floats a) { return __builtin_convertvector(a, Ints); }
/// Towards minus infinity.
TROUPE_INLINE Ints to_whole_below(Floats a) {
  const Ints whole = to_whole(a);
  return select(less(a, __builtin_convertvector(whole, Floats)), whole - 1, whole);
}
/// Unaligned loads and stores of kLanes values.
TROUPE_INLINE Floats load(const float* p) { return load_vector<Floats>(p); }
TROUPE_INLINE Ints load(const std::uint32_t* p) { return load_vector<Ints>(p); }
TROUPE_INLINE void store(float* p, Floats v) { store_vector(p, v); }
TROUPE_INLINE void store(std::uint32_t* p, Ints v) { store_vector(p, v); }

}  // namespace
}  // namespace troupe::env
