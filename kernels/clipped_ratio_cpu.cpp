// The clipped objective row by row: a row's predictions are its own, so that rows are shared among threads.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/clipped_ratio.h"
#include "kernels/simd.h"
#include "kernels/threads.h"

namespace troupe::kernels::cpu {
namespace {

template <class A>
A widened(A x) {
  return x;
}
float widened(simd::Bf16 x) { return simd::to_float(x); }

template <class T>
T narrowed(simd::Accumulate<T> x) {
  if constexpr (std::is_same_v<T, simd::Bf16>)
    return simd::to_bf16(x);
  else
    return x;
}

template <class A>
struct Judged {
  A loss = 0;
  /// of the loss by the log-ratio
  A slope = 0;
};

/// Of an entry; `half` is the half sum of its squares.
template <class A>
Judged<A> judge(const RatioClip& clip, A base, A half, A advantage, A weight) {
  if (weight == 0) return {};
  const A free_log = base - half;
  const auto low = static_cast<A>(clip.log_min), high = static_cast<A>(clip.log_max);
  // a NaN stays one
  const A log_ratio = free_log < low ? low : free_log > high ? high : free_log;
  const A ratio = std::exp(log_ratio);
  const auto lower = static_cast<A>(clip.lower), upper = static_cast<A>(clip.upper);
  const A clipped = ratio < lower ? lower : ratio > upper ? upper : ratio;
  const A of_ratio = -advantage * ratio, of_clipped = -advantage * clipped;
  Judged<A> judged{of_ratio, of_ratio};
  if (of_ratio < of_clipped) judged = {of_clipped, 0};
  const A bound = static_cast<A>(clip.dual) * std::abs(advantage);
  if (clip.dual > 0 && bound < judged.loss) judged = {bound, 0};
  if (free_log < low || free_log > high) judged.slope = 0;
  return {weight * judged.loss, weight * judged.slope};
}

/// A number's place in its row's block.
std::int64_t place_of(const RatioShape& shape, std::int64_t number) {
  return number / shape.width * shape.channels + number % shape.width;
}

template <class A>
A z_of(A scale, A offset, A v) {
  return scale == 0 ? 0 : offset + scale * v;
}

/// body(row, entry, first number of the entry in its row, its row's predictions, what the entry is judged as).
template <class T, class F>
void each_entry(const RatioShape& shape, const RatioClip& clip, const T* v,
                const RatioTerms<simd::Accumulate<T>>& terms, int threads, const F& body) {
  using A = simd::Accumulate<T>;
  const std::int64_t of_row = shape.numbers / shape.per_entry;
  parallel(shape.rows, threads, [&](std::int64_t begin, std::int64_t end) {
    for (auto row = begin; row < end; ++row) {
      const std::int64_t block = terms.block[row] * shape.actions * shape.channels;
      for (std::int64_t e = 0; e < of_row; ++e) {
        const std::int64_t entry = row * of_row + e;
        A sum = 0;
        for (std::int64_t i = e * shape.per_entry; i < (e + 1) * shape.per_entry; ++i) {
          const std::int64_t number = row * shape.numbers + i;
          const A z = z_of<A>(terms.scale[number], terms.offset[number], widened(v[block + place_of(shape, i)]));
          sum += z * z;
        }
        body(row, entry, e * shape.per_entry, block,
             judge<A>(clip, terms.base[entry], sum / 2, terms.advantage[entry], terms.weight[entry]));
      }
    }
  });
}

}  // namespace

template <class T>
void clipped_ratio_forward(const RatioShape& shape, const RatioClip& clip, const T* v,
                           const RatioTerms<simd::Accumulate<T>>& terms, simd::Accumulate<T>* losses, int threads) {
  each_entry(shape, clip, v, terms, threads,
             [&](std::int64_t, std::int64_t entry, std::int64_t, std::int64_t, const auto& judged) {
               losses[entry] = judged.loss;
             });
}

template <class T>
void clipped_ratio_backward(const RatioShape& shape, const RatioClip& clip, const T* v,
                            const RatioTerms<simd::Accumulate<T>>& terms, simd::Accumulate<T> dloss, T* dv,
                            int threads) {
  using A = simd::Accumulate<T>;
  std::fill_n(dv, shape.predictions(), T{});
  each_entry(shape, clip, v, terms, threads,
             [&](std::int64_t row, std::int64_t, std::int64_t first, std::int64_t block, const auto& judged) {
               if (judged.slope == 0) return;
               for (std::int64_t i = first; i < first + shape.per_entry; ++i) {
                 const std::int64_t number = row * shape.numbers + i, at = block + place_of(shape, i);
                 const A scale = terms.scale[number];
                 // l falls by z dz
                 const A z = z_of<A>(scale, terms.offset[number], widened(v[at]));
                 dv[at] = narrowed<T>(-(dloss * judged.slope) * z * scale);
               }
             });
}

#define TROUPE_CLIPPED_RATIO(T)                                                                              \
  template void clipped_ratio_forward<T>(const RatioShape&, const RatioClip&, const T*,                      \
                                         const RatioTerms<simd::Accumulate<T>>&, simd::Accumulate<T>*, int); \
  template void clipped_ratio_backward<T>(const RatioShape&, const RatioClip&, const T*,                     \
                                          const RatioTerms<simd::Accumulate<T>>&, simd::Accumulate<T>, T*, int);
TROUPE_CLIPPED_RATIO(float)
TROUPE_CLIPPED_RATIO(double)
TROUPE_CLIPPED_RATIO(simd::Bf16)

}  // namespace troupe::kernels::cpu
