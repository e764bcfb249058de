#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace troupe {

/// Appends values to a byte string: little-endian numbers, variable-length integers (7 bits a byte, low bits first),
/// strings with their length in front. One thread at a time.
class ByteWriter {
 public:
  template <class T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T> && std::endian::native == std::endian::little);
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_.push_back(static_cast<char>(value | 0x80));
    out_.push_back(static_cast<char>(value));
  }
  /// Small magnitudes of either sign become small numbers: 0, -1, 1, -2 -> 0, 1, 2, 3.
  void signed_varint(std::int64_t value) {
    varint((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
  }
  void text(std::string_view value) {
    varint(value.size());
    out_ += value;
  }
  void bytes(std::string_view value) { out_ += value; }

  std::size_t size() const { return out_.size(); }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

/// Reads what ByteWriter wrote from bytes that nobody vouches for: reading past the end, or a number that does not fit,
/// gives zeros and makes ok() false for good. Refers to the bytes; does not own them.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  /// Everything was read and nothing failed.
  bool at_end() const { return ok_ && rest_.empty(); }
  std::size_t left() const { return rest_.size(); }
  void fail() {
    ok_ = false;
    rest_ = {};
  }

  template <class T>
  T number() {
    T value{};
    const auto from = take(sizeof value);
    if (from.size() == sizeof value) std::memcpy(&value, from.data(), sizeof value);
    return value;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = number<std::uint8_t>();
      if (!ok_) return 0;
      const std::uint64_t bits = byte & 0x7F;
      if (shift == 63 && bits > 1) break;  // more than 64 bits
      value |= bits << shift;
      if ((byte & 0x80) == 0) return value;
    }
    fail();
    return 0;
  }
  std::int64_t signed_varint() {
    const std::uint64_t value = varint();
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }
  /// A count of things that take at least `least` bytes each: one that cannot be true fails before anybody allocates.
  std::size_t count(std::size_t least) {
    const std::uint64_t value = varint();
    if (value > rest_.size() / least) fail();
    return ok_ ? static_cast<std::size_t>(value) : 0;
  }
  std::string_view text() {
    const auto from = take(count(1));
    return {reinterpret_cast<const char*>(from.data()), from.size()};
  }
  std::span<const std::byte> take(std::size_t bytes) {
    if (bytes > rest_.size()) fail();
    if (!ok_) return {};
    const auto out = rest_.first(bytes);
    rest_ = rest_.subspan(bytes);
    return out;
  }

 private:
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace troupe
