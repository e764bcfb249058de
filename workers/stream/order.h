#pragma once

#include <cstdint>

#include "data/sampling/split.h"

namespace troupe::workers {

/// Which item of a feed: a position of the training order, or the index of a held-out sample. Training comes first.
struct SampleKey {
  Split split = Split::train;
  /// 0 or more.
  std::int64_t position = 0;
  auto operator<=>(const SampleKey&) const = default;

  /// As the tag of a credit (comm/channel/channel.h): the split in the highest bit, the position in the others.
  std::uint64_t tag() const noexcept {
    return static_cast<std::uint64_t>(split) << 63 | static_cast<std::uint64_t>(position);
  }
  /// The key that has this tag; every number is the tag of one.
  static SampleKey of(std::uint64_t tag) noexcept {
    return {static_cast<Split>(tag >> 63), static_cast<std::int64_t>(tag & ~(std::uint64_t{1} << 63))};
  }
};

/// Which positions of the sampler's order one learner rank trains, and when.
/// Step s trains [s*G, (s+1)*G). Its micro-batches j = 0..G/m-1 hold m consecutive positions each; rank r of W takes
/// the A = G/(m*W) micro-batches j = r*A ... r*A + A-1, so that summing ranks in order adds micro-batches in order.
struct RankOrder {
  /// G: samples of one step, over all ranks.
  std::int64_t global_batch = 1;
  /// m: samples of one micro-batch.
  std::int64_t micro_batch = 1;
  /// A: micro-batches of one rank in a step.
  std::int64_t accumulation = 1;
  /// r, below W = G / (m * A).
  std::int64_t rank = 0;

  /// m * A: samples of this rank in one step.
  std::int64_t items_per_step() const noexcept { return micro_batch * accumulation; }
  /// Position of sample `index` (0..m-1) of this rank's micro-batch `micro` (0..A-1) of `step`:
  /// s*G + (r*A + micro)*m + index.
  std::int64_t position(std::int64_t step, std::int64_t micro, std::int64_t index) const noexcept {
    return step * global_batch + (rank * accumulation + micro) * micro_batch + index;
  }
  /// Position of the rank's item number `item`, counted from step 0: the order in which a feed asks for samples. It
  /// grows with `item`.
  std::int64_t position_of_item(std::int64_t item) const noexcept {
    const std::int64_t within = item % items_per_step();
    return position(item / items_per_step(), within / micro_batch, within % micro_batch);
  }
};

}  // namespace troupe::workers
