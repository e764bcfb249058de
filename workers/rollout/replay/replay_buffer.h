#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "model/policy/policy_shape.h"
#include "model/shard/network.h"
#include "workers/rollout/trajectory_layout.h"

namespace troupe {

/// Transitions of one learner rank for off-policy algorithms (rl.md 10): trajectory items as slabs, uniform draws over every transition
/// that is resident, the oldest slab goes first. A next observation is not stored twice: it is the slab's next row, or the final
/// observation where an episode ended. Pictures stay u8. O(1) to add per transition, O(rows) to draw. Not thread-safe.
class ReplayBuffer {
 public:
  struct Options {
    std::int64_t capacity = 1'000'000;  ///< transitions
    double gamma = 0.99;
    bool semi_mdp = false;  ///< rewards sum_k gamma^k r_k and gamma^n between chunks, in place of their sum and gamma
    bool always_bootstrap = false;  ///< terminations do not cut the target
  };
  ReplayBuffer(Options options, TrajectoryLayout layout, PolicyShape shape);
  ~ReplayBuffer();

  /// Adds an item's transitions, in the order of calls and rows; leaves out frozen and lost rows. Evicts the oldest slabs
  /// until all fit; an item larger than the capacity is an invariant violation.
  void add(std::span<const std::byte> item);
  /// Forgets everything, and holds `capacity` transitions from now on.
  void clear(std::int64_t capacity);

  /// `rows` transitions drawn uniformly with replacement; draw i of call `index` depends on (seed, index, i) and on what is resident
  /// alone. rl_keys names: state, images, action, reward, next.*, continues. Requires resident() > 0.
  Batch draw(std::int64_t rows, std::uint64_t seed, std::uint64_t index) const;

  std::int64_t resident() const { return static_cast<std::int64_t>(cells_.size()); }
  std::int64_t evicted() const { return evicted_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  struct Slab;
  /// Where a transition lies: slab number and cell t * n + i.
  struct Cell {
    std::uint64_t slab = 0;
    std::int64_t cell = 0;
  };
  std::unique_ptr<Slab> make_slab(std::span<const std::byte> item) const;
  void evict_oldest();
  void add_images(Batch& batch, std::span<const Cell> cells) const;
  const Slab& slab_of(const Cell& cell) const { return *slabs_[static_cast<std::size_t>(cell.slab - first_slab_)]; }

  Options options_;
  const TrajectoryLayout layout_;
  const PolicyShape shape_;
  std::deque<std::unique_ptr<Slab>> slabs_;
  std::uint64_t first_slab_ = 0;  ///< number of slabs_.front()
  std::deque<Cell> cells_;        ///< of every transition that is resident, oldest first
  std::int64_t evicted_ = 0, bytes_ = 0;
};

}  // namespace troupe
