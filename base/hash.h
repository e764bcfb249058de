#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace troupe {

/// XXH3-64 of the bytes, seed 0. For digests of samples and cache keys; not a defence against an attacker.
std::uint64_t xxh3_64(std::span<const std::byte> bytes) noexcept;
std::uint64_t xxh3_64(std::string_view text) noexcept;
/// XXH64 (the older function), seed 0; the golden data files use it.
std::uint64_t xxh64(std::span<const std::byte> bytes) noexcept;
/// XXH3-128 as 32 lower-case hex digits. For file digests.
std::string xxh3_128_hex(std::span<const std::byte> bytes);

/// Streaming XXH3-128 for files that do not fit in memory.
class Xxh3Stream {
 public:
  Xxh3Stream();
  ~Xxh3Stream();
  Xxh3Stream(const Xxh3Stream&) = delete;
  Xxh3Stream& operator=(const Xxh3Stream&) = delete;
  void update(std::span<const std::byte> bytes);
  std::string hex() const;

 private:
  void* state_;
};

/// 16 lower-case hex digits.
std::string to_hex(std::uint64_t value);

/// The 64-bit finaliser of control-plane.md 12.1; a bijection on 64-bit words.
constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9ULL;
  x ^= x >> 27;
  x *= 0x94D049BB133111EBULL;
  x ^= x >> 31;
  return x;
}

}  // namespace troupe
