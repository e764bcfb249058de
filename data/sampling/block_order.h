#pragma once

#include <algorithm>
#include <cstdint>

#include "base/hash.h"
#include "data/sampling/sampler.h"

namespace troupe::data {

/// How far samples may stay together (data.locality_block, data.shuffle_buffer).
struct Locality {
  /// B, neighbouring samples that are drawn together (a locality block); 1: full shuffle.
  std::uint64_t block = 1;
  /// Q, positions among which they are mixed.
  std::uint64_t buffer = 256;

  /// Q as it is used: the largest multiple of B that is not above Q, at least B, so that no block lies in two windows.
  constexpr std::uint64_t window() const noexcept { return std::max<std::uint64_t>(1, buffer / block) * block; }
};

/// The order of one dataset epoch with locality: a bijection of [0, N), as pure and as resumable as KeyedBijection.
///
/// 1. The N / B full blocks of B consecutive samples are permuted by KeyedBijection(seed, epoch, N / B); the N mod B
///    samples of the tail come last.
/// 2. In every window of Q positions (Locality::window; the last one may be shorter) the samples are permuted by
///    KeyedBijection(mix64(seed xor "window"), mix64(epoch) + w, size of window w).
/// With B = 1 it is KeyedBijection(seed, epoch, N) itself. Frozen, as KeyedBijection is.
class BlockOrder {
 public:
  /// Requires size >= 1, locality.block >= 1.
  constexpr BlockOrder(std::uint64_t seed, std::uint64_t epoch, std::uint64_t size, Locality locality) noexcept
      : seed_(seed),
        epoch_(epoch),
        size_(size),
        locality_(locality),
        blocks_(seed, epoch, std::max<std::uint64_t>(1, size / locality.block)) {}

  /// The sample at position `p` of the dataset epoch. Requires p < size.
  constexpr std::uint64_t operator()(std::uint64_t p) const noexcept {
    const std::uint64_t block = locality_.block;
    if (block <= 1) return blocks_(p);
    const std::uint64_t width = locality_.window(), window = p / width;
    const std::uint64_t begin = window * width, count = std::min(width, size_ - begin);
    p = begin + KeyedBijection(mix64(seed_ ^ kWindowKey), mix64(epoch_) + window, count)(p - begin);
    if (p >= size_ / block * block) return p;
    return blocks_(p / block) * block + p % block;
  }

 private:
  // The text "window" in ASCII, so that both permutations are independent.
  static constexpr std::uint64_t kWindowKey = 0x776F646E6977ULL;

  std::uint64_t seed_, epoch_, size_;
  Locality locality_;
  KeyedBijection blocks_;
};

/// draw_sample with locality: position q -> dataset epoch q div N and the sample there. Requires size >= 1.
constexpr SampleDraw draw_sample(std::uint64_t seed, std::uint64_t position, std::uint64_t size,
                                 Locality locality) noexcept {
  const std::uint64_t epoch = position / size;
  return {epoch, BlockOrder(seed, epoch, size, locality)(position % size)};
}

/// Samples [first, last) that are drawn together with sample `index` of `size`.
struct SampleRange {
  std::uint64_t first = 0, last = 0;
};
constexpr SampleRange block_of(std::uint64_t index, std::uint64_t size, Locality locality) noexcept {
  const std::uint64_t first = index / locality.block * locality.block;
  return {first, std::min(size, first + locality.block)};
}

}  // namespace troupe::data
