#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "configs/data_config.h"

namespace troupe {

/// One sample before its data are read.
struct SampleEntry {
  std::size_t episode = 0;  ///< place in Dataset::episodes()
  std::int64_t anchor = 0;  ///< row
};

/// The samples of a set of episodes: every anchor whose window is full, in the order of episodes and rows. Stored as
/// runs, so 15 million anchors take little memory; at() is a binary search.
class SampleIndex {
 public:
  /// Appends the anchors of one episode whose rows have these labels; rows in `removed` (ascending) are never anchors.
  /// Returns how many were added. Episodes are added in ascending order.
  std::int64_t add_episode(std::size_t episode, const WindowConfig& window, std::span<const std::int64_t> labels,
                           std::span<const std::int64_t> removed = {});

  std::uint64_t size() const { return size_; }
  /// Requires i < size().
  SampleEntry at(std::uint64_t i) const;
  /// Entry i of `count` entries spread evenly over all of them. Requires i < count <= size().
  SampleEntry spread(std::uint64_t i, std::uint64_t count) const { return at((2 * i + 1) * size_ / (2 * count)); }

 private:
  struct Run {
    std::uint64_t begin;  ///< index of the run's first sample
    std::size_t episode;
    std::int64_t anchor;
  };
  std::vector<Run> runs_;
  std::uint64_t size_ = 0;
};

}  // namespace troupe
