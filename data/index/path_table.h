#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace troupe {

/// A sorted list of relative paths, front-coded: every path but each 16th holds only what differs from the one before
/// it. 400,000 paths of a v2 dataset take 5 MB. Refers to bytes that it does not own; immutable: any thread.
class PathTable {
 public:
  /// Checks every entry: in bounds, ascending, relative and without "..". Errors: data_loss.
  static Result<PathTable> parse(std::span<const std::byte> bytes);
  /// The bytes of a table. Requires paths in ascending order without repeats.
  static std::string encode(std::span<const std::string> paths);

  std::size_t size() const { return size_; }
  /// Requires i < size().
  std::string at(std::size_t i) const;
  /// Place of a path.
  std::optional<std::size_t> find(std::string_view path) const;

 private:
  std::size_t size_ = 0;
  std::vector<std::uint32_t> restarts_;  ///< where each group of 16 begins in entries_
  std::span<const std::byte> entries_;
};

}  // namespace troupe
