#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/collective.h"
#include "model/optim/adamw.h"
#include "model/shard/flat_layout.h"
#include "model/shard/network.h"
#include "model/shard/resident_group.h"
#include "model/shard/schedule.h"
#include "model/shard/shard_store.h"
#include "model/shard/slot_pool.h"
#include "model/shard/unit_tape.h"

namespace troupe {

struct EngineOptions {
  at::ScalarType param_dtype = at::kFloat;  ///< kFloat or kBFloat16: what is gathered and computed with
  int param_slots = 3;                      ///< K; no more than there are units
  int grad_slots = 2;                       ///< G
  double clip_grad_norm = 1.0;              ///< 0: off
  bool recompute = true;                    ///< backward runs units again; off: their graphs are kept (TapeMode::keep)
  AdamWOptions adamw = {};
};

/// What all ranks agree on after the last micro-batch of a step.
struct StepVote {
  double grad_norm = 0;        ///< of the global mean gradient, before clipping; rounded to f32
  bool finite = true;          ///< no rank saw a loss or gradient that is not finite
  std::vector<double> sums;    ///< the caller's, summed over ranks
  std::vector<double> maxima;  ///< the caller's, maximum over ranks
};

/// Where an engine's state comes from: a checkpoint, other weights, or another engine's snapshot. Units are those of
/// Engine::units(); of a frozen one only the master is asked for.
class StateSource {
 public:
  virtual ~StateSource() = default;
  /// Optimizer updates behind this state.
  virtual std::int64_t updates() const = 0;
  /// Elements [begin, begin + count) of a unit's flat buffer, below layout.numel (so without padding, but with gaps).
  virtual Result<void> read(std::size_t unit, StateKind kind, std::int64_t begin, std::int64_t count,
                            float* out) const = 0;
};

/// One rank of a sharded learner: runs a Network whose parameters lie in flat shards over the ranks of a Collective
/// (learner.md 4; docs/learner-engine.md). One step is: accumulate once per micro-batch, vote, then commit or discard.
///
/// All ranks call the same functions in the same order with the same options; the batches differ. One thread at a time,
/// but abort() from any. After an error from accumulate, vote or forward the open step is lost and the group unusable:
/// destroy that collective (which ends what it still has under way in the engine's buffers), make a new one, attach it,
/// and load() the last committed state. Errors of those three: aborted, deadline_exceeded (from the collective),
/// failed_precondition (no group or no state; ranks that differ in layout or updates), internal (the network threw).
class Engine {
 public:
  Engine(std::shared_ptr<const Network> network, EngineOptions options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Joins a group, which must outlive its use here. Allocates for (rank, world) if they changed, which loses the
  /// state; else keeps it.
  void attach(Collective& collective);
  /// Values of step 0, a function of the seed and the parameters' names; moments zero, updates 0.
  void initialise(std::uint64_t seed);
  Result<void> load(const StateSource& source);
  bool has_state() const noexcept { return has_state_; }

  /// Forward and backward of one micro-batch; adds d(weight * loss) summed over ranks to the gradients, or replaces
  /// them when `first`. With weight = 1 / (micro-batches of the global batch, over all ranks) the sum is the mean.
  Result<MicroResult> accumulate(const Batch& batch, double weight, bool first);
  /// Agrees on the gradient norm and on whether the step is usable. After the last micro-batch of a step.
  Result<StepVote> vote(std::vector<double> sums, std::vector<double> maxima);
  /// Clips and updates this rank's shards; `vote` must be finite. Local: no rank waits for another.
  void commit(double lr, const StepVote& vote);
  /// Forgets the gradients; parameters, moments and updates stay as they are, bit for bit.
  void discard();
  /// Runs the network without gradients. All ranks must call it.
  Result<Outputs> forward(const Batch& batch);

  /// This rank's state: for each unit in order, master, m and v of its shard, of a frozen unit its values alone,
  /// little-endian f32 (docs/learner-engine.md).
  std::size_t snapshot_bytes() const;
  void snapshot(std::span<std::byte> out) const;

  std::int64_t updates() const noexcept { return updates_; }
  int rank() const noexcept { return rank_; }
  int world() const noexcept { return world_; }
  const Network& network() const noexcept { return *network_; }
  /// What has state: the chain's units, and after them the resident group, if any (state_units).
  const std::vector<UnitSpec>& units() const noexcept { return units_; }
  /// Of units().
  const std::vector<FlatLayout>& layouts() const noexcept { return layouts_; }
  std::uint64_t layout_hash() const noexcept { return layout_hash_; }
  /// Bytes allocated: "shards" (master, m, v, accumulator, bf16 copy, frozen values), "slots" (parameter slots, resident
  /// parameters), "gradients" (gradient slots, resident gradients).
  std::map<std::string, std::int64_t> bytes() const;

  /// Makes the call under way, and later ones, fail with `aborted`. Any thread, while the attached collective exists.
  void abort(const std::string& why);

 private:
  class Executor;
  Result<void> check_ready(const char* what) const;
  Result<void> run(UnitTape& tape, ScheduleMode mode, bool first);
  Error give_up(Error error);
  void allocate();
  void start_from(std::int64_t updates);
  std::size_t chain_length() const { return network_->units().size(); }
  /// Index of the resident group, when there is one.
  std::size_t resident_unit() const { return chain_length(); }
  bool any_unit_in_slots_changes() const;

  const std::shared_ptr<const Network> network_;
  EngineOptions options_;
  std::vector<UnitSpec> units_;
  std::vector<FlatLayout> layouts_;
  std::uint64_t layout_hash_ = 0;

  std::atomic<Collective*> collective_{nullptr};
  int rank_ = 0, world_ = 0;
  std::unique_ptr<ShardStore> store_;
  std::unique_ptr<SlotPool> params_, gradients_;
  std::unique_ptr<ResidentGroup> resident_;  ///< null without resident parameters
  std::vector<ParamView> views_;             ///< of unit u over its slot u mod K; leaves where they are trained

  bool has_state_ = false;
  bool has_gradients_ = false;
  bool saw_non_finite_loss_ = false;
  std::int64_t updates_ = 0;
};

}  // namespace troupe
