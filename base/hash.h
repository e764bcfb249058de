#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/namespaces.h"

namespace troupe::base {

/// XXH3-64 of the bytes, seed 0. For digests of samples and cache keys; not a defence against an attacker.
/// Source: xxHash 0.8, whose outputs are fixed for good. Used for items of channels, cache keys, states in tests.
std::uint64_t xxh3_64(std::span<const std::byte> bytes) noexcept;
std::uint64_t xxh3_64(std::string_view text) noexcept;
/// XXH64 (the older function), seed 0; the golden data files use it.
std::uint64_t xxh64(std::span<const std::byte> bytes) noexcept;
/// XXH3-128 as 32 lower-case hex digits. For file digests.
/// High 64 bits first, as xxhsum prints it.
std::string xxh3_128_hex(std::span<const std::byte> bytes);

/// Streaming XXH3-128 for files that do not fit in memory.
/// The digest is that of xxh3_128_hex over all bytes in order, however they are cut. Not thread-safe; not copyable.
class Xxh3Stream {
 public:
  Xxh3Stream();
  ~Xxh3Stream();
  Xxh3Stream(const Xxh3Stream&) = delete;
  Xxh3Stream& operator=(const Xxh3Stream&) = delete;
  /// Adds bytes; returns without keeping a reference to them.
  void update(std::span<const std::byte> bytes);
  /// Of everything added so far, 32 lower-case hex digits; more bytes may follow.
  std::string hex() const;

 private:
  void* state_;
};

/// 16 lower-case hex digits.
/// High digits first, without 0x.
std::string to_hex(std::uint64_t value);
/// Reads what to_hex wrote; nothing for other text.
std::optional<std::uint64_t> from_hex(std::string_view text);

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014; Stafford's variant 13); a bijection on 64-bit words.
/// Part of every random key and of the order of samples (docs/data.md#order): it never changes.
constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9ULL;
  x ^= x >> 27;
  x *= 0x94D049BB133111EBULL;
  x ^= x >> 31;
  return x;
}

}  // namespace troupe::base
