#pragma once

#include <cstdint>

#include "base/namespaces.h"
#include "kernels/element.h"

namespace troupe::kernels {

// The clipped objective of proximal policy optimisation (arXiv:1707.06347 eq. 7; dual clip arXiv:1912.09729 eq. 5) over
// densities of normal distributions whose means are affine in a network's predictions v. A row has `numbers` of them,
// `per_entry` to an entry, which has one log-ratio:
//     z = offset + scale v, of each number; one whose scale is 0 has no part, whatever v is
//     l = clamp(base - sum z^2 / 2), of an entry
//     loss = sum over entries of weight min(max(-advantage e^l, -advantage clip(e^l)), dual |advantage|)
// An entry whose weight is 0 has no part.

/// Where a row's numbers lie among the predictions [blocks, actions, channels], dense: a row has the first numbers of
/// the first actions of a block of its own.
struct RatioShape {
  std::int64_t rows = 0;
  /// of a row, and of an entry, which divides it
  std::int64_t numbers = 0, per_entry = 0;
  /// of an action that count
  std::int64_t width = 0;
  /// of the predictions
  std::int64_t blocks = 0, actions = 0, channels = 0;

  std::int64_t entries() const { return rows * (numbers / per_entry); }
  std::int64_t predictions() const { return blocks * actions * channels; }
};

/// Where ratios are cut.
struct RatioClip {
  double log_min = -20, log_max = 20;
  double lower = 0.8, upper = 1.2;
  /// 0: off
  double dual = 0;
};

/// What the objective is made of, of N rows with E entries of L / E numbers each, in A (f32, or f64 for predictions of
/// f64), dense. Blocks of rows differ.
template <class A>
struct RatioTerms {
  const std::int64_t* block = nullptr;  ///< [N]
  const A* scale = nullptr;             ///< [N,L]
  const A* offset = nullptr;            ///< [N,L]
  const A* base = nullptr;              ///< [N,E]
  const A* advantage = nullptr;         ///< [N,E]
  const A* weight = nullptr;            ///< [N,E]
};

namespace cpu {

/// losses [N,E]: each entry's part of the loss.
template <class T>
void clipped_ratio_forward(const RatioShape& shape, const RatioClip& clip, const T* v,
                           const RatioTerms<simd::Accumulate<T>>& terms, simd::Accumulate<T>* losses, int threads);
/// dv = dloss d(loss)/dv, rounded once, of all predictions: zero where a prediction has no part.
template <class T>
void clipped_ratio_backward(const RatioShape& shape, const RatioClip& clip, const T* v,
                            const RatioTerms<simd::Accumulate<T>>& terms, simd::Accumulate<T> dloss, T* dv,
                            int threads);

}  // namespace cpu
}  // namespace troupe::kernels
