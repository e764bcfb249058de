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

namespace troupe::workers {

/// Transitions of one learner rank for off-policy algorithms: trajectory items as slabs, uniform draws over every
/// transition that is resident, the oldest slab goes first. A next observation is not stored twice: it is the slab's
/// next row, or the final observation where an episode ended; its texts are the same. Images stay u8 (depth f32).
/// O(1) to add per transition, O(rows) to draw, which threads share that stand by (kernels::with_own_team). Not
/// thread-safe.
///
/// A transition of K rewards is (s, a, R, s', c), and its target is R + c Q(s'):
///     R = sum_k r_k    c = gamma      or, with semi_mdp,    R = sum_k gamma^k r_k    c = gamma^(actions executed)
/// c = 0 after a termination unless always_bootstrap; a truncation never cuts the target.
class ReplayBuffer {
 public:
  struct Options {
    /// Transitions.
    std::int64_t capacity = 1'000'000;
    double gamma = 0.99;
    /// Rewards sum_k gamma^k r_k and gamma^n between chunks, in place of their sum and gamma.
    bool semi_mdp = false;
    /// Terminations do not cut the target.
    bool always_bootstrap = false;
  };
  static Options options_of(const JobConfig& job);
  /// `layout` must have the final_* fields of an off-policy job.
  ReplayBuffer(Options options, TrajectoryLayout layout, PolicyShape shape);
  ~ReplayBuffer();

  /// Adds an item's transitions, in the order of calls and rows; leaves out frozen and lost rows. Evicts the oldest
  /// slabs until all fit; an item larger than the capacity is an invariant violation.
  void add(std::span<const std::byte> item);
  /// Forgets everything, evicted() included, and holds `capacity` transitions from now on.
  void clear(std::int64_t capacity);

  /// `rows` transitions drawn uniformly with replacement; draw i of call `index` depends on (seed, index, i) and on
  /// what is resident alone. Keys of rl_keys: state [rows, D], action [rows, K A], reward and continues [rows, 1], next
  /// state, images and next images [rows, H, W, C], texts [rows, bytes]. An empty buffer is an invariant violation.
  Batch draw(std::int64_t rows, std::uint64_t seed, std::uint64_t index) const;

  /// Transitions, bytes of memory; produced = resident + evicted + lost is what the ledger audits.
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
  void add_texts(Batch& batch, std::span<const Cell> cells) const;
  const Slab& slab_of(const Cell& cell) const { return *slabs_[static_cast<std::size_t>(cell.slab - first_slab_)]; }

  Options options_;
  const TrajectoryLayout layout_;
  const PolicyShape shape_;
  std::deque<std::unique_ptr<Slab>> slabs_;
  /// Number of slabs_.front().
  std::uint64_t first_slab_ = 0;
  /// Of every transition that is resident, oldest first.
  std::deque<Cell> cells_;
  std::int64_t evicted_ = 0, bytes_ = 0;
};

}  // namespace troupe::workers
