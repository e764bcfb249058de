#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/namespaces.h"

namespace troupe::base {

/// Appends values to a byte string: little-endian numbers, variable-length integers (7 bits a byte, low bits first),
/// strings with their length in front. One thread at a time.
/// Index files and the clip cache are written with it: a change of the order of calls on one side must be made on the
/// other.
class ByteWriter {
 public:
  /// sizeof(T) bytes of an integer or float, little-endian, without alignment or a tag: the reader must know the
  /// type.
  template <class T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T> && std::endian::native == std::endian::little);
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  /// 1 to 10 bytes: LEB128, as in Protocol Buffers.
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_.push_back(static_cast<char>(value | 0x80));
    out_.push_back(static_cast<char>(value));
  }
  /// Small magnitudes of either sign become small numbers: 0, -1, 1, -2 -> 0, 1, 2, 3.
  void signed_varint(std::int64_t value) {
    varint((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
  }
  /// varint(bytes), then the bytes; no terminating zero, no check of the encoding.
  void text(std::string_view value) {
    varint(value.size());
    out_ += value;
  }
  /// The bytes alone: the reader must know how many.
  void bytes(std::string_view value) { out_ += value; }

  /// Bytes written so far.
  std::size_t size() const { return out_.size(); }
  /// The string written so far; the writer is empty afterwards.
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

/// Reads what ByteWriter wrote from bytes that nobody vouches for: reading past the end, or a number that does not fit,
/// gives zeros and makes ok() false for good. Refers to the bytes; does not own them.
class ByteReader {
 public:
  /// The bytes must outlive the reader and every view that text() and take() return.
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  /// False for good after the first failure: a reader of untrusted bytes reads everything and asks once, at the end.
  bool ok() const { return ok_; }
  /// Everything was read and nothing failed.
  bool at_end() const { return ok_ && rest_.empty(); }
  /// Bytes not read yet; 0 after a failure.
  std::size_t left() const { return rest_.size(); }
  /// For the caller's own checks: everything read from here on is zero or empty.
  void fail() {
    ok_ = false;
    rest_ = {};
  }

  /// As ByteWriter::number; 0 where fewer than sizeof(T) bytes are left.
  template <class T>
  T number() {
    T value{};
    const auto from = take(sizeof value);
    if (from.size() == sizeof value) std::memcpy(&value, from.data(), sizeof value);
    return value;
  }
  /// Fails on more than 64 bits and on a number that the bytes do not finish.
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
  /// As ByteWriter::signed_varint (ZigZag).
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
  /// A view into the bytes; empty on failure.
  std::string_view text() {
    const auto from = take(count(1));
    return {reinterpret_cast<const char*>(from.data()), from.size()};
  }
  /// The next `bytes` bytes as a view; empty and a failure where fewer are left.
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

}  // namespace troupe::base
