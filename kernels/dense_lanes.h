#pragma once

// A vector of floats for the instruction set that the including file is compiled for. Everything has internal linkage:
// three files include this with three meanings. Every operation rounds alike on all of them: fused() rounds once, in
// hardware or in the C library, and the files are compiled without contraction.
#include <cstdint>

#include "base/simd.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace troupe::kernels {
namespace {

// Vectors of a tile and its rows, by vectors: most of the registers are sums; with fewer vectors there are enough rows
// to hide the latency of a sum, which is 8 operations.
#if defined(__AVX512F__)
constexpr std::int64_t kLanes = 16;
constexpr int kTileVectors = 4;
constexpr int kTileRows[kTileVectors + 1] = {0, 12, 8, 8, 6};
#elif defined(__AVX2__)
constexpr std::int64_t kLanes = 8;
constexpr int kTileVectors = 2;
constexpr int kTileRows[kTileVectors + 1] = {0, 10, 6};
#else
constexpr std::int64_t kLanes = 4;
constexpr int kTileVectors = 1;
constexpr int kTileRows[kTileVectors + 1] = {0, 4};
#endif

using Floats = SimdVector<float, kLanes>;
using Bits = SimdVector<std::uint32_t, kLanes>;
TROUPE_INLINE Floats load(const float* p) { return load_vector<Floats>(p); }
TROUPE_INLINE void store(float* p, Floats v) { store_vector(p, v); }
TROUPE_INLINE Floats all(float a) { return a - Floats{}; }

#if defined(__AVX512F__)

/// The lanes that a partial load or store touches; no other address is read or written.
using Mask = __mmask16;
TROUPE_INLINE Mask first_lanes(std::int64_t count) { return static_cast<Mask>((1U << count) - 1U); }
TROUPE_INLINE Floats load(const float* p, Mask m) { return _mm512_maskz_loadu_ps(m, p); }
TROUPE_INLINE void store(float* p, Floats v, Mask m) { _mm512_mask_storeu_ps(p, m, v); }
TROUPE_INLINE Floats fused(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
/// b where a or b is NaN.
TROUPE_INLINE Floats smaller(Floats a, Floats b) { return _mm512_min_ps(a, b); }
/// a where b is above 0, else 0.
TROUPE_INLINE Floats where_positive(Floats b, Floats a) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(b, _mm512_setzero_ps(), _CMP_GT_OQ), a);
}

/// A vector of four columns of four rows each: `piece` for the rows i, 4 + i, 8 + i and 12 + i.
template <class Piece>
TROUPE_INLINE Floats gather_rows(std::int64_t i, const Piece& piece) {
  const __m512 first = _mm512_insertf32x4(_mm512_castps128_ps512(piece(i)), piece(4 + i), 1);
  return _mm512_insertf32x4(_mm512_insertf32x4(first, piece(8 + i), 2), piece(12 + i), 3);
}
TROUPE_INLINE void transpose_quarters(Floats (&r)[4]) {
  const __m512d a = _mm512_castps_pd(_mm512_unpacklo_ps(r[0], r[1])),
                b = _mm512_castps_pd(_mm512_unpackhi_ps(r[0], r[1]));
  const __m512d c = _mm512_castps_pd(_mm512_unpacklo_ps(r[2], r[3])),
                d = _mm512_castps_pd(_mm512_unpackhi_ps(r[2], r[3]));
  r[0] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
  r[1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
  r[2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
  r[3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
}

#elif defined(__AVX2__)

using Mask = __m256i;
TROUPE_INLINE Mask first_lanes(std::int64_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
TROUPE_INLINE Floats load(const float* p, Mask m) { return _mm256_maskload_ps(p, m); }
TROUPE_INLINE void store(float* p, Floats v, Mask m) { _mm256_maskstore_ps(p, m, v); }
TROUPE_INLINE Floats fused(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
TROUPE_INLINE Floats smaller(Floats a, Floats b) { return _mm256_min_ps(a, b); }
TROUPE_INLINE Floats where_positive(Floats b, Floats a) {
  return _mm256_and_ps(_mm256_cmp_ps(b, _mm256_setzero_ps(), _CMP_GT_OQ), a);
}

template <class Piece>
TROUPE_INLINE Floats gather_rows(std::int64_t i, const Piece& piece) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(piece(i)), piece(4 + i), 1);
}
TROUPE_INLINE void transpose_quarters(Floats (&r)[4]) {
  const __m256d a = _mm256_castps_pd(_mm256_unpacklo_ps(r[0], r[1])),
                b = _mm256_castps_pd(_mm256_unpackhi_ps(r[0], r[1]));
  const __m256d c = _mm256_castps_pd(_mm256_unpacklo_ps(r[2], r[3])),
                d = _mm256_castps_pd(_mm256_unpackhi_ps(r[2], r[3]));
  r[0] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, c));
  r[1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, c));
  r[2] = _mm256_castpd_ps(_mm256_unpacklo_pd(b, d));
  r[3] = _mm256_castpd_ps(_mm256_unpackhi_pd(b, d));
}

#else

/// A number of lanes.
using Mask = std::size_t;
TROUPE_INLINE Mask first_lanes(std::int64_t count) { return static_cast<Mask>(count); }
TROUPE_INLINE Floats load(const float* p, Mask m) { return load_vector<Floats>(p, m); }
TROUPE_INLINE void store(float* p, Floats v, Mask m) { store_vector(p, v, m); }
TROUPE_INLINE Floats fused(Floats a, Floats b, Floats c) {
  for (std::int64_t i = 0; i < kLanes; ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return c;
}
TROUPE_INLINE Floats select(SimdVector<std::int32_t, kLanes> m, Floats a, Floats b) {
  const auto bits = reinterpret_cast<Bits>(m);
  return reinterpret_cast<Floats>((bits & reinterpret_cast<Bits>(a)) | (~bits & reinterpret_cast<Bits>(b)));
}
TROUPE_INLINE Floats smaller(Floats a, Floats b) { return select(a < b, a, b); }
TROUPE_INLINE Floats where_positive(Floats b, Floats a) { return select(b > Floats{}, a, Floats{}); }

template <class Piece>
TROUPE_INLINE Floats gather_rows(std::int64_t i, const Piece& piece) {
  return piece(i);
}
TROUPE_INLINE void transpose_quarters(Floats (&r)[4]) {
  for (std::int64_t i = 0; i < 4; ++i) {
    for (std::int64_t j = i + 1; j < 4; ++j) {
      const float upper = r[i][j];
      r[i][j] = r[j][i];
      r[j][i] = upper;
    }
  }
}

#endif

/// Four floats: a piece of a row.
using Four = SimdVector<float, 4>;
TROUPE_INLINE Four load_four(const float* p) { return load_vector<Four>(p); }
/// The first `count` of them, and zeros.
TROUPE_INLINE Four load_four(const float* p, std::int64_t count) {
#if defined(__AVX2__)
  const __m128i lanes = _mm_setr_epi32(0, 1, 2, 3);
  return _mm_maskload_ps(p, _mm_cmpgt_epi32(_mm_set1_epi32(static_cast<int>(count)), lanes));
#else
  return load_vector<Four>(p, static_cast<std::size_t>(count));
#endif
}

}  // namespace
}  // namespace troupe::kernels
