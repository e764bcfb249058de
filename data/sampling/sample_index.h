#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "configs/data_config.h"
#include "data/sampling/dataset_spec.h"

namespace troupe::data {

/// One sample before its data are read.
struct SampleEntry {
  /// Place in Dataset::episodes().
  std::size_t episode = 0;
  /// Table row of the episode.
  std::int64_t anchor = 0;
};

/// Anchors first, first + stride, first + 2 * stride, ...: `count` of them; the stride is the dataset's anchor_stride.
struct AnchorRun {
  std::int64_t first = 0;
  std::int64_t count = 0;
  bool operator==(const AnchorRun&) const = default;
};

/// The anchors of an episode whose rows have these labels, ascending: rows that are a multiple of spec.anchor_stride,
/// are not in `removed` (ascending) and have a full window (sample_window). With spec.anchors `windows` only the
/// first anchor of every distinct window is kept. Pure. Requires a spec without a window defect.
std::vector<AnchorRun> anchor_runs(const DatasetSpec& spec, std::span<const std::int64_t> labels,
                                   std::span<const std::int64_t> removed = {});

/// The samples of a set of episodes in the order of episodes and rows. Stored as runs, so 15 million anchors take
/// little memory; at() is a binary search. Immutable once filled: any thread.
class SampleIndex {
 public:
  /// Part of one episode: samples begin, begin + 1, ... are the anchors of a run.
  struct Run {
    /// Number, among all samples, of the run's first one.
    std::uint64_t begin = 0;
    std::uint64_t episode = 0;
    std::int64_t anchor = 0;
  };

  /// `stride`: rows between neighbouring anchors of a run.
  explicit SampleIndex(std::int64_t stride = 1) : stride_(stride) {}
  /// From parts that an index on disk holds. Requires runs ascending in `begin`, the first 0, all below `size`.
  SampleIndex(std::int64_t stride, std::vector<Run> runs, std::uint64_t size)
      : stride_(stride), runs_(std::move(runs)), size_(size) {}

  /// Appends the anchors of one episode; episodes are added in ascending order.
  void add_runs(std::size_t episode, std::span<const AnchorRun> runs);
  /// Appends anchor_runs() of one episode. Returns how many samples were added. Requires stride spec.anchor_stride.
  std::int64_t add_episode(std::size_t episode, const DatasetSpec& spec, std::span<const std::int64_t> labels,
                           std::span<const std::int64_t> removed = {});
  /// The same for multi_anchor with every anchor.
  std::int64_t add_episode(std::size_t episode, const WindowConfig& window, std::span<const std::int64_t> labels,
                           std::span<const std::int64_t> removed = {});

  /// Number of samples.
  std::uint64_t size() const { return size_; }
  std::int64_t stride() const { return stride_; }
  std::span<const Run> runs() const { return runs_; }
  /// Sample i, by binary search over the runs. Requires i < size().
  SampleEntry at(std::uint64_t i) const;
  /// Entry i of `count` entries spread evenly over all of them. Requires i < count <= size().
  SampleEntry spread(std::uint64_t i, std::uint64_t count) const { return at((2 * i + 1) * size_ / (2 * count)); }

 private:
  std::int64_t stride_ = 1;
  std::vector<Run> runs_;
  std::uint64_t size_ = 0;
};

}  // namespace troupe::data
