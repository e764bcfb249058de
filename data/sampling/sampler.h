#pragma once

#include <cstdint>

#include "base/hash.h"

namespace troupe::data {

/// The order of training samples: a keyed bijection over [0, N), one per dataset epoch, computable anywhere without a
/// shuffled list.
///
/// N's halves have k bits, k the least count with 2^(2k) >= N. A position is split into (L, R); four rounds
///     (L, R) <- (R, L xor low_k(mix64(R xor K_r))),   K_r = mix64(seed xor mix64(epoch) xor r * 0x9E3779B97F4A7C15)
/// are repeated while the result is >= N (cycle walking), so the map stays a bijection for every N.
/// A balanced Feistel network (Luby and Rackoff, 1988) with cycle walking (Black and Rogaway, 2002). Frozen:
/// a different formula would make every old run irreproducible.
class KeyedBijection {
 public:
  /// Requires size >= 1.
  constexpr KeyedBijection(std::uint64_t seed, std::uint64_t epoch, std::uint64_t size) noexcept : size_(size) {
    while (half_bits_ < 32 && (std::uint64_t{1} << (2 * half_bits_)) < size) ++half_bits_;
    mask_ = (std::uint64_t{1} << half_bits_) - 1;
    for (std::uint64_t r = 0; r < kRounds; ++r) keys_[r] = mix64(seed ^ mix64(epoch) ^ (r * 0x9E3779B97F4A7C15ULL));
  }

  /// Where position `p` of the dataset epoch lands. Requires p < size.
  constexpr std::uint64_t operator()(std::uint64_t p) const noexcept {
    do {
      p = permute(p);
    } while (p >= size_);
    return p;
  }

 private:
  static constexpr std::uint64_t kRounds = 4;

  constexpr std::uint64_t permute(std::uint64_t p) const noexcept {
    std::uint64_t left = p >> half_bits_, right = p & mask_;
    for (std::uint64_t key : keys_) {
      const std::uint64_t next = left ^ (mix64(right ^ key) & mask_);
      left = right;
      right = next;
    }
    return (left << half_bits_) | right;
  }

  std::uint64_t size_;
  std::uint64_t half_bits_ = 0;
  std::uint64_t mask_ = 0;
  std::uint64_t keys_[kRounds] = {};
};

/// One sample of the global order.
struct SampleDraw {
  std::uint64_t epoch = 0;
  /// Sample of the dataset, in [0, N).
  std::uint64_t index = 0;
};

/// Global position q -> dataset epoch q div N and the sample drawn there; epochs join without partial batches. Pure.
/// Requires size >= 1.
constexpr SampleDraw draw_sample(std::uint64_t seed, std::uint64_t position, std::uint64_t size) noexcept {
  const std::uint64_t epoch = position / size;
  return {epoch, KeyedBijection(seed, epoch, size)(position % size)};
}

}  // namespace troupe::data
