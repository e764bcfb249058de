#include "image/tile_rows.h"

#include <algorithm>

#include "base/simd.h"
#include "image/resize.h"
#include "image/tile_loops.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace troupe::image {

ColumnPlan::ColumnPlan(std::int64_t in, std::int64_t out, std::int64_t lanes_wanted)
    : lanes(lanes_wanted), groups((out + lanes_wanted - 1) / lanes_wanted) {
  const AxisWeights axis(in, out);
  for (const ResizeTaps& t : axis.taps) taps = std::max(taps, t.count);
  base.resize(static_cast<std::size_t>(groups));
  offset.resize(static_cast<std::size_t>(groups * lanes));
  weight.resize(static_cast<std::size_t>(groups * taps * lanes));
  for (std::int64_t x = 0; x < out; ++x) {
    const std::int64_t group = x / lanes, lane = x % lanes;
    const ResizeTaps& t = axis.taps[static_cast<std::size_t>(x)];
    if (lane == 0) base[static_cast<std::size_t>(group)] = static_cast<std::int32_t>(t.first);
    const std::int64_t from_base = t.first - base[static_cast<std::size_t>(group)];
    offset[static_cast<std::size_t>(x)] = static_cast<std::int32_t>(from_base);
    span = std::max(span, from_base);
    for (std::int64_t k = 0; k < t.count; ++k) {
      weight[static_cast<std::size_t>((group * taps + k) * lanes + lane)] =
          axis.weights[static_cast<std::size_t>(t.weight + k)];
    }
  }
}

namespace {

// ---- any machine ----

void narrow_plain(const PlaneRow& source, const ColumnPlan& plan, const PlaneRow& out) {
  for (std::int64_t plane = 0; plane < 3; ++plane) {
    const float* from = source.red + plane * source.stride;
    float* to = out.red + plane * out.stride;
    const float* weight = plan.weight.data();
    for (std::int64_t x = 0; x < plan.groups; ++x, weight += plan.taps) {
      const float* pixel = from + plan.base[static_cast<std::size_t>(x)];
      float sum = pixel[0] * weight[0];
      for (std::int64_t k = 1; k < plan.taps; ++k) sum = loops::fused<false>(pixel[k], weight[k], sum);
      to[x] = sum;
    }
  }
}

void place_plain(const std::uint32_t* pixels, std::int64_t width, std::int64_t repeat, std::uint8_t* out) {
  for (std::int64_t x = 0; x < width; ++x) {
    for (std::int64_t copy = 0; copy < repeat; ++copy, out += 3) {
      out[0] = static_cast<std::uint8_t>(pixels[x]);
      out[1] = static_cast<std::uint8_t>(pixels[x] >> 8);
      out[2] = static_cast<std::uint8_t>(pixels[x] >> 16);
    }
  }
}

// The loops of tile_loops.h, compiled for one instruction set.
#define TROUPE_TILE_LOOPS(suffix, attributes, has_fma)                                                                \
  attributes void chroma_##suffix(const std::uint8_t* u, const std::uint8_t* v, std::int64_t blocks,                  \
                                  const YuvCoefficients& c, ChromaTerms& out) {                                       \
    loops::chroma(u, v, blocks, c, out.red.data(), out.green.data(), out.blue.data());                                \
  }                                                                                                                   \
  attributes void from_yuv_##suffix(const std::uint8_t* luma, const ChromaTerms& chroma, std::int64_t skip,           \
                                    std::int64_t width, const YuvCoefficients& c, const PlaneRow& out) {              \
    loops::from_yuv<has_fma>(luma, chroma.red.data() + skip, chroma.green.data() + skip, chroma.blue.data() + skip,   \
                             width, c, out.red, out.green(), out.blue());                                             \
  }                                                                                                                   \
  attributes void from_rgb_##suffix(const std::uint8_t* rgb, std::int64_t width, const PlaneRow& out) {               \
    loops::from_rgb<has_fma>(rgb, width, out.red, out.green(), out.blue());                                           \
  }                                                                                                                   \
  attributes void mix_##suffix(const float* const* rows, const float* weights, std::int64_t taps, std::int64_t count, \
                               float* out) {                                                                          \
    loops::mix<has_fma>(rows, weights, taps, count, out);                                                             \
  }                                                                                                                   \
  attributes void jitter_##suffix(const JitterFactors& factors, int code, float contrast_add, std::int64_t width,     \
                                  const PlaneRow& row) {                                                              \
    loops::jitter(factors, code, contrast_add, width, row.red, row.green(), row.blue());                              \
  }                                                                                                                   \
  attributes void gray_##suffix(const PlaneRow& row, std::int64_t width, double* sums) {                              \
    loops::gray(row.red, row.green(), row.blue(), width, sums);                                                       \
  }                                                                                                                   \
  attributes void words_##suffix(const PlaneRow& row, std::int64_t width, std::uint32_t* pixels) {                    \
    loops::words(row.red, row.green(), row.blue(), width, pixels);                                                    \
  }

TROUPE_TILE_LOOPS(plain, , loops::kFastFma)

void pack_plain(const PlaneRow& row, std::int64_t width, std::int64_t repeat, std::uint32_t* pixels,
                std::uint8_t* out) {
  words_plain(row, width, pixels);
  place_plain(pixels, width, repeat, out);
}

constexpr TileRows kPlain{"plain",      1,         chroma_plain, from_yuv_plain, from_rgb_plain,
                          narrow_plain, mix_plain, jitter_plain, gray_plain,     pack_plain};

#if defined(__x86_64__)

TROUPE_TILE_LOOPS(avx2, TROUPE_AVX2, true)
TROUPE_TILE_LOOPS(avx512, TROUPE_AVX512, true)

/// Source values at the offsets of eight or sixteen lanes: from one window of as many floats where it reaches, from
/// two, or (0) by single loads.
template <int kWindows>
TROUPE_AVX2 inline __m256 pick(const float* from, __m256i offset) {
  if constexpr (kWindows == 0) return _mm256_i32gather_ps(from, offset, 4);
  const __m256 near = _mm256_permutevar8x32_ps(_mm256_loadu_ps(from), offset);
  if constexpr (kWindows == 1) return near;
  const __m256 far = _mm256_permutevar8x32_ps(_mm256_loadu_ps(from + 8), offset);
  return _mm256_blendv_ps(near, far, _mm256_castsi256_ps(_mm256_slli_epi32(offset, 28)));  // bit 3 chooses
}
template <int kWindows>
TROUPE_AVX512 inline __m512 pick(const float* from, __m512i offset) {
  if constexpr (kWindows == 0) return _mm512_i32gather_ps(offset, from, 4);
  if constexpr (kWindows == 1) return _mm512_permutexvar_ps(offset, _mm512_loadu_ps(from));
  return _mm512_permutex2var_ps(_mm512_loadu_ps(from), offset, _mm512_loadu_ps(from + 16));
}

// TileRows::narrow for vectors of `bits` bits.
#define TROUPE_NARROW(suffix, attributes, bits)                                                                 \
  template <int kWindows>                                                                                       \
  attributes void narrow_groups_##suffix(const PlaneRow& source, const ColumnPlan& plan, const PlaneRow& out) { \
    constexpr std::int64_t kLanes = bits / 32;                                                                  \
    const float* weight = plan.weight.data();                                                                   \
    for (std::int64_t g = 0; g < plan.groups; ++g) {                                                            \
      const float* from = source.red + plan.base[static_cast<std::size_t>(g)];                                  \
      const auto offset =                                                                                       \
          _mm##bits##_loadu_si##bits(reinterpret_cast<const __m##bits##i*>(plan.offset.data() + kLanes * g));   \
      auto w = _mm##bits##_loadu_ps(weight);                                                                    \
      auto r = _mm##bits##_mul_ps(pick<kWindows>(from, offset), w);                                             \
      auto gr = _mm##bits##_mul_ps(pick<kWindows>(from + source.stride, offset), w);                            \
      auto b = _mm##bits##_mul_ps(pick<kWindows>(from + 2 * source.stride, offset), w);                         \
      weight += kLanes;                                                                                         \
      for (std::int64_t k = 1; k < plan.taps; ++k, weight += kLanes) {                                          \
        w = _mm##bits##_loadu_ps(weight);                                                                       \
        r = _mm##bits##_fmadd_ps(pick<kWindows>(from + k, offset), w, r);                                       \
        gr = _mm##bits##_fmadd_ps(pick<kWindows>(from + k + source.stride, offset), w, gr);                     \
        b = _mm##bits##_fmadd_ps(pick<kWindows>(from + k + 2 * source.stride, offset), w, b);                   \
      }                                                                                                         \
      _mm##bits##_storeu_ps(out.red + kLanes * g, r);                                                           \
      _mm##bits##_storeu_ps(out.green() + kLanes * g, gr);                                                      \
      _mm##bits##_storeu_ps(out.blue() + kLanes * g, b);                                                        \
    }                                                                                                           \
  }                                                                                                             \
  void narrow_##suffix(const PlaneRow& source, const ColumnPlan& plan, const PlaneRow& out) {                   \
    if (plan.span < bits / 32) return narrow_groups_##suffix<1>(source, plan, out);                             \
    if (plan.span < bits / 16) return narrow_groups_##suffix<2>(source, plan, out);                             \
    narrow_groups_##suffix<0>(source, plan, out);                                                               \
  }

TROUPE_NARROW(avx2, TROUPE_AVX2, 256)
TROUPE_NARROW(avx512, TROUPE_AVX512, 512)

/// Words to packed bytes, four pixels at a time. Stores are 16 bytes of which 12 count; the next overwrites the rest,
/// so the last pixels, up to five, are left to place_plain: four more bytes are two pixels.
template <int kRepeat>
TROUPE_AVX2 void place_avx2(const std::uint32_t* pixels, std::int64_t width, std::uint8_t* out) {
  const __m128i once = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
  const __m128i first = _mm_setr_epi8(0, 1, 2, 0, 1, 2, 4, 5, 6, 4, 5, 6, -1, -1, -1, -1);
  const __m128i second = _mm_setr_epi8(8, 9, 10, 8, 9, 10, 12, 13, 14, 12, 13, 14, -1, -1, -1, -1);
  std::int64_t x = 0;
  for (; x + 6 <= width; x += 4) {
    const __m128i four = _mm_loadu_si128(reinterpret_cast<const __m128i*>(pixels + x));
    std::uint8_t* to = out + 3 * kRepeat * x;
    if constexpr (kRepeat == 1) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_shuffle_epi8(four, once));
    } else {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_shuffle_epi8(four, first));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 12), _mm_shuffle_epi8(four, second));
    }
  }
  place_plain(pixels + x, width - x, kRepeat, out + 3 * kRepeat * x);
}

void place_fast(const std::uint32_t* pixels, std::int64_t width, std::int64_t repeat, std::uint8_t* out) {
  if (repeat == 1) return place_avx2<1>(pixels, width, out);
  if (repeat == 2) return place_avx2<2>(pixels, width, out);
  place_plain(pixels, width, repeat, out);
}

void pack_avx2(const PlaneRow& row, std::int64_t width, std::int64_t repeat, std::uint32_t* pixels, std::uint8_t* out) {
  words_avx2(row, width, pixels);
  place_fast(pixels, width, repeat, out);
}
void pack_avx512(const PlaneRow& row, std::int64_t width, std::int64_t repeat, std::uint32_t* pixels,
                 std::uint8_t* out) {
  words_avx512(row, width, pixels);
  place_fast(pixels, width, repeat, out);
}

constexpr TileRows kAvx2{"avx2",      8,        chroma_avx2, from_yuv_avx2, from_rgb_avx2,
                         narrow_avx2, mix_avx2, jitter_avx2, gray_avx2,     pack_avx2};
constexpr TileRows kAvx512{"avx512",      16,         chroma_avx512, from_yuv_avx512, from_rgb_avx512,
                           narrow_avx512, mix_avx512, jitter_avx512, gray_avx512,     pack_avx512};
constexpr const TileRows* kTileRows[] = {&kAvx512, &kAvx2, &kPlain};
#else
constexpr const TileRows* kTileRows[] = {&kPlain};
#endif

}  // namespace

std::span<const TileRows* const> tile_rows() { return runnable(kTileRows); }

}  // namespace troupe::image
