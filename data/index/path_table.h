#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace troupe::data {

/// A sorted list of relative paths, front-coded: every path but each 16th holds only what differs from the one before
/// it. 400,000 paths of a v2 dataset take 5 MB. Refers to bytes that it does not own; immutable: any thread.
///
/// Bytes: varint count, then per path a varint of the bytes shared with the path before it (0 for every 16th, from the
/// first on) and the rest as a varint length and the bytes. A varint has 7 bits per byte, low bits first.
class PathTable {
 public:
  /// A table over `bytes`, which must outlive it. Checks every entry: in bounds, ascending, relative and without "..".
  /// Errors: data_loss.
  static Result<PathTable> parse(std::span<const std::byte> bytes);
  /// The bytes of a table. Requires paths in ascending order without repeats.
  static std::string encode(std::span<const std::string> paths);

  /// Number of paths.
  std::size_t size() const { return size_; }
  /// Requires i < size().
  /// Decodes at most 16 entries.
  std::string at(std::size_t i) const;
  /// Place of a path, by binary search over the groups of 16.
  std::optional<std::size_t> find(std::string_view path) const;

 private:
  std::size_t size_ = 0;
  /// Where each group of 16 begins in entries_.
  std::vector<std::uint32_t> restarts_;
  std::span<const std::byte> entries_;
};

}  // namespace troupe::data
