#pragma once

#include <cstdint>
#include <vector>

#include "configs/job_config.h"
#include "env/block_layout.h"
#include "workers/rollout/moments.h"
#include "workers/rollout/policy_shape_of.h"
#include "workers/rollout/trajectory_layout.h"

namespace troupe::workers {

/// What of a block's past later policy steps need, beside its item: sums over episodes under way. Copied with the
/// block, forgotten when it begins anew.
struct BlockHistory {
  /// [n] discounted return so far: R <- gamma R + r, per action that was executed with algorithm.discount semi_mdp,
  /// else R <- gamma R + sum_k r_k per policy step. Its variance normalises rewards (NormalizeReward of Gymnasium).
  std::vector<double> discounted;
  /// [n] of the episode: bit 0 ever, bit 1 at the last action.
  std::vector<std::uint8_t> success;
  /// [n] the episode has ended and its row is frozen (reset modes episode and fixed).
  std::vector<std::uint8_t> finished;
  /// Of the item under way.
  Moments observed, returned;
  /// [n,W] each, in the order of TrajectoryLayout::policy_memory: what the policy remembers before its next step. Zero
  /// where an episode begins.
  std::vector<std::vector<float>> memory;
};

/// Observations at which episodes ended, one behind the other, for the value path.
struct FinalRows {
  /// Of the block, ascending.
  std::vector<std::int64_t> rows;
  /// [rows,D], as the policy sees it.
  std::vector<float> state;
  /// Bytes of [rows,H,W,C] each.
  std::vector<std::vector<std::uint8_t>> images;
  /// [rows,W] each: what the policy remembered there.
  std::vector<std::vector<float>> memory;
};

/// Writes one block's transitions into an item. Knows the two layouts (BlockLayout, TrajectoryLayout) and nothing of
/// channels, weights or policies. Without state of its own: what lasts is in BlockHistory. One thread. Order of
/// calls for an item:
///     begin, observe(0), transition(0), observe(1), finals(0), transition(1), ..., observe(T), finals(T-1), finish
class TrajectoryWriter {
 public:
  /// `layout` must outlive the writer.
  TrajectoryWriter(const JobConfig& job, const EnvSpec& spec, const TrajectoryLayout& layout);

  const BlockLayout& block_layout() const { return block_; }
  BlockView block(std::byte* memory) const { return {&block_, memory}; }
  /// Zeros for n rows.
  BlockHistory new_history() const;

  /// Zeros the item's fields and writes its TrajectoryHead and what the policy remembers. `continues`: episodes go on
  /// from the block's last item; else they begin anew and the history is forgotten. Statistics are of the item alone
  /// and always begin at zero.
  void begin(TrajectoryView item, std::int64_t round, std::int64_t block, bool continues, BlockHistory& history) const;
  /// Observations of call `call` (T: those after the last step), as `scale` makes them. Raw states of calls below T
  /// are counted in history.observed, but for rows that are frozen after their episode's end.
  void observe(TrajectoryView item, std::int64_t call, const BlockView& from, const StateScale& scale,
               BlockHistory& history) const;
  /// What call `call` brought: rewards, flags, counts; records of episodes that ended in it. A lost row (its
  /// environment failed) leaves no record and is not counted.
  void transition(TrajectoryView item, std::int64_t call, const BlockView& from, BlockHistory& history) const;
  /// The observations at which episodes ended in call `call`, into `finals`, scaled; into the item
  /// too where it holds them, pictures behind those of the calls before. Lost rows are left out. What the policy
  /// remembers of episodes that ended, lost ones too, moves from the history into `finals` and is zero from then on.
  void finals(TrajectoryView item, std::int64_t call, const BlockView& from, const StateScale& scale,
              BlockHistory& history, FinalRows& finals) const;
  /// After the last call: in reset modes episode and fixed a record for every row whose episode has not ended,
  /// statistics, least and greatest version.
  void finish(TrajectoryView item, const BlockView& from, BlockHistory& history) const;

 private:
  /// What the policy remembers of episodes that ended, into `finals` where they were not lost.
  void forget(const BlockView& from, BlockHistory& history, FinalRows& finals) const;
  /// Vectors of one row, f64 rounded to f32, into `state` [D].
  void gather(std::span<const std::int64_t> offsets, const BlockView& from, std::int64_t row, float* state) const;

  const TrajectoryLayout& layout_;
  const BlockLayout block_;
  const ObservationParts parts_;
  const double gamma_;
  /// The discount counts control steps, not policy steps.
  const bool per_action_;
  /// Reset modes episode and fixed.
  const bool ends_with_item_;
};

}  // namespace troupe::workers
