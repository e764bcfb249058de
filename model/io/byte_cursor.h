#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "configs/format_error.h"

namespace troupe::model {

/// Reads little-endian numbers from a part of a file; throws FormatError where the part ends. `base` is where the part
/// begins in the file, so that offsets in messages are the file's. `what` names the part in messages ("pickle"). Bytes
/// and `what` are not copied and must outlive the cursor. A value: a copy reads on from the same place. Not
/// thread-safe.
class ByteCursor {
 public:
  ByteCursor(std::span<const std::byte> bytes, std::int64_t base, std::string_view what)
      : bytes_(bytes), base_(base), what_(what) {}

  /// Place in the file.
  std::int64_t offset() const { return base_ + static_cast<std::int64_t>(at_); }
  bool at_end() const { return at_ == bytes_.size(); }

  /// The next `count` bytes, as a view; the place moves behind them.
  std::span<const std::byte> take(std::size_t count) {
    if (count > bytes_.size() - at_) {
      throw FormatError(offset(), fmt::format("the {} ends {} bytes too early", what_, count - (bytes_.size() - at_)));
    }
    const auto part = bytes_.subspan(at_, count);
    at_ += count;
    return part;
  }
  /// The next sizeof(T) bytes as a little-endian number, whatever the processor's byte order and the alignment.
  template <std::unsigned_integral T>
  T number() {
    std::uint64_t value = 0;
    const auto part = take(sizeof(T));
    for (std::size_t i = sizeof(T); i-- > 0;) value = value << 8 | static_cast<std::uint64_t>(part[i]);
    return static_cast<T>(value);
  }
  /// The next `count` bytes as characters, not checked for UTF-8; a view.
  std::string_view text(std::size_t count) {
    const auto part = take(count);
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }
  /// The characters up to a line feed, which is taken too but not returned. FormatError without one in the first
  /// `longest` + 1 bytes, so that a damaged file is not searched to its end.
  std::string_view line(std::size_t longest) {
    const auto rest = bytes_.subspan(at_);
    for (std::size_t i = 0; i < rest.size() && i <= longest; ++i) {
      if (rest[i] != std::byte{'\n'}) continue;
      const auto found = text(i);
      ++at_;
      return found;
    }
    throw FormatError(offset(), fmt::format("the {} has a line that does not end within {} bytes", what_, longest));
  }

 private:
  std::span<const std::byte> bytes_;
  std::int64_t base_;
  std::string_view what_;
  std::size_t at_ = 0;
};

}  // namespace troupe::model
