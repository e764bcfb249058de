#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "comm/collective/collective.h"
#include "model/optim/adamw.h"
#include "model/program/unit_memory.h"
#include "model/shard/flat_layout.h"
#include "model/shard/network.h"
#include "model/shard/objective_plan.h"
#include "model/shard/replicated_parameters.h"
#include "model/shard/shard_store.h"
#include "model/shard/slot_pool.h"
#include "model/shard/unit_groups.h"
#include "model/shard/unit_tape.h"
#include "model/shard/update_intervals.h"

namespace troupe::model {

/// What does not change while an engine lives. All ranks have the same.
struct EngineOptions {
  /// kFloat or kBFloat16: what is gathered and computed with
  at::ScalarType param_dtype = at::kFloat;
  /// K, buffers that units are gathered into; no more than there are units
  int param_slots = 3;
  /// G, buffers that gradients are reduced from
  int grad_slots = 2;
  /// largest norm of the global gradient; 0: off
  double clip_grad_norm = 1.0;
  /// backward runs units again; off: their graphs are kept (TapeMode::keep)
  bool recompute = true;
  AdamWOptions adamw = {};
  /// Parameters without decay, or with a learning rate of their own.
  UpdateRules update_rules = {};
  /// Unit groups with an optimizer and a clip norm of their own. The others have `adamw` and are clipped by
  /// `clip_grad_norm` together.
  std::map<std::string, GroupOptions> groups = {};
  /// A network's manual backward (Network::manual_backward) is used where all fits: parameters in f32, K >= units, and
  /// G >= units that are trained.
  bool explicit_backward = true;
};

/// What all ranks agree on after the last micro-batch of a step.
struct StepVote {
  /// of the global mean gradient, before clipping; rounded to f32
  double grad_norm = 0;
  /// no rank saw a loss or gradient that is not finite
  bool finite = true;
  /// the caller's numbers, summed over ranks (f64)
  std::vector<double> sums;
  /// the caller's numbers, maximum over ranks (f64)
  std::vector<double> maxima;
  /// the same as grad_norm of each unit group alone
  std::map<std::string, double> group_norms = {};
  /// not rounded, in order of UnitGroups::names(): what commit clips by
  std::vector<double> group_squares = {};
};

/// Where an engine's state comes from: a checkpoint, other weights, or another engine's snapshot. Units are those of
/// Engine::units(); of a frozen one, and of a target network, only the master is asked for.
class StateSource {
 public:
  virtual ~StateSource() = default;
  /// Optimizer updates behind this state.
  virtual std::int64_t updates() const = 0;
  /// The same by unit group. One that is missing has seen updates().
  virtual std::map<std::string, std::int64_t> group_updates() const { return {}; }
  /// Elements [begin, begin + count) of a unit's flat buffer, below layout.numel (so without padding, but with gaps).
  virtual Result<void> read(std::size_t unit, StateKind kind, std::int64_t begin, std::int64_t count,
                            float* out) const = 0;
};

/// One rank of a sharded learner: runs a Network whose parameters lie in flat shards over the ranks of a Collective
/// (docs/learner-engine.md; the sharding of ZeRO-3, arXiv:1910.02054). One step is: accumulate once per micro-batch,
/// vote, then commit or discard.
///
/// All ranks call the same functions in the same order with the same options; the batches differ. One thread at a time,
/// but abort() from any. After an error from accumulate, vote, forward or gather_views the open step is lost and the
/// group unusable: destroy that collective (which ends what it still has under way in the engine's buffers), make a new
/// one, attach it, and load() the last committed state. Errors of those four: aborted, deadline_exceeded (from the
/// collective), failed_precondition (no group or no state; ranks that differ in layout or updates), internal (the
/// network threw).
///
/// An *objective* is another Network over the same units, such as one phase of an actor-critic algorithm. Its UnitSpecs
/// may say `trainable = false` of units that this phase only uses: they get no gradient from it. It must live as long
/// as the engine.
class Engine {
 public:
  Engine(std::shared_ptr<const Network> network, EngineOptions options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Joins a group, which must outlive its use here. Allocates for (rank, world) if they changed, which loses the
  /// state; else keeps it.
  void attach(Collective& collective);
  /// Values of step 0, a function of the seed and the parameters' names; target networks are copies of what they
  /// follow; moments zero, updates 0.
  void initialise(std::uint64_t seed);
  /// Reads this rank's shards from `source`; padding becomes zero. Local: ranks may load from different places, and
  /// vote finds out when their updates differ. Errors: those of `source`, after which the engine has no state.
  Result<void> load(const StateSource& source);
  bool has_state() const noexcept { return has_state_; }

  /// Forward and backward of one micro-batch; adds d(weight * loss) summed over ranks to the gradients, or replaces
  /// them when `first`. With weight = 1 / (micro-batches of the global batch, over all ranks) the sum is the mean.
  /// `objective`: null for the network itself.
  Result<MicroResult> accumulate(const Batch& batch, double weight, bool first, const Network* objective = nullptr);
  /// Agrees on the gradient norms and on whether the step is usable. After the last micro-batch of a step. Two
  /// all-reduces of f64: the sums of squares of each group and `sums`, then `maxima` with what identifies layout and
  /// updates. All ranks pass as many numbers.
  Result<StepVote> vote(std::vector<double> sums, std::vector<double> maxima);
  /// Clips and updates this rank's shards (AdamW, model/optim/adamw.h; EngineOptions::update_rules) with the
  /// accumulated gradient g times
  ///     min(1, clip_grad_norm / (norm + 1e-6))
  /// of its clip set; `vote` must be finite. Local: no rank waits for another.
  void commit(double lr, const StepVote& vote);
  /// The same of the named groups alone, each at its learning rate. The others keep parameters, moments and updates bit
  /// for bit; their gradients are forgotten. A group whose units no objective trained in this step is updated with
  /// gradients of zero.
  void commit(const GroupRates& rates, const StepVote& vote);
  /// Forgets the gradients; parameters, moments and updates stay as they are, bit for bit.
  void discard();
  /// Runs the network, or an objective, without gradients. All ranks must call it.
  Result<Outputs> forward(const Batch& batch, const Network* objective = nullptr);

  /// Moves target networks (UnitSpec::average_of) toward what they follow: t = (1 - tau) t + tau s, in f32 on this
  /// rank's shards, whatever is gathered. Local. `targets`: names of units; empty: all. Not while gradients are
  /// accumulated.
  void average(double tau, const std::vector<std::string>& targets = {});

  /// This rank's shards of the named units for publication, not copied: masters, or the values of a frozen unit that is
  /// gathered in f32. Rank r has elements [r * n, (r + 1) * n) of a unit's flat buffer, n =
  /// layouts()[u].shard(world()). They change with the next commit, average or load.
  std::vector<std::span<const float>> published(const std::vector<std::string>& names) const;
  /// Whole values of units on this rank by unit name, f32, owned by the result; no leaves. All ranks must call it.
  Result<std::map<std::string, ParamView>> gather_views(const std::vector<std::string>& names);

  /// This rank's state but for what never changes: for each unit in order, master, m and v of its shard, of a target
  /// network its values alone, of a frozen unit nothing; little-endian f32 (docs/learner-engine.md).
  std::size_t snapshot_bytes() const;
  void snapshot(std::span<std::byte> out) const;
  /// This rank's shard of a frozen unit where it lies, 1-D, in the dtype that is gathered. Valid until an
  /// attach() with another rank or world.
  const at::Tensor& frozen_shard(std::size_t unit) const;

  /// Commits behind this state, of whatever groups.
  std::int64_t updates() const noexcept { return updates_; }
  /// Of each unit group.
  std::map<std::string, std::int64_t> group_updates() const;
  int rank() const noexcept { return rank_; }
  int world() const noexcept { return world_; }
  const Network& network() const noexcept { return *network_; }
  /// What has state: the chain's units, and after them the replicated parameters, if any (state_units).
  const std::vector<UnitSpec>& units() const noexcept { return units_; }
  /// Index in units(). An unknown name aborts the process.
  std::size_t unit_index(std::string_view name) const;
  /// Of units().
  const std::vector<FlatLayout>& layouts() const noexcept { return layouts_; }
  std::uint64_t layout_hash() const noexcept { return layout_hash_; }
  /// Bytes allocated: "shards" (master, m, v, accumulator, bf16 copy, frozen values, target networks), "slots"
  /// (parameter slots, replicated parameters), "gradients" (gradient slots, gradients of the replicated parameters).
  std::map<std::string, std::int64_t> bytes() const;

  /// Makes the call under way, and later ones, fail with `aborted`. Any thread, while the attached collective exists.
  void abort(const std::string& why);

 private:
  class Executor;
  struct Update {
    std::size_t group;
    double lr;
  };
  Result<void> check_ready(const char* what) const;
  ObjectivePlan& plan_of(const Network* objective);
  Result<void> run(const std::function<Result<void>(Executor&)>& work);
  Result<void> agree(std::vector<double>& sums, std::vector<double>& maxima);
  void update(std::span<const Update> updates, const StepVote& vote);
  void update_unit(std::size_t unit, std::span<const float> gradient, float clip, double lr, std::int64_t count,
                   const AdamWOptions& adamw);
  Error give_up(Error error);
  void allocate();
  void make_views();
  void start_from(std::int64_t updates);
  void values_changed(std::size_t unit);
  /// Views of a unit's gradients over gradient_buffer(unit, place), and of its replicated parameters'; `place` < 0:
  /// those alone.
  const ParamView& gradient_view(std::size_t unit, int place);
  /// A rank that is alone has everything in place: units are read from its shards, and the first gradients of a step
  /// are written to the accumulators. Nothing is gathered, copied or reduced.
  bool is_alone() const { return world_ == 1; }
  /// Where a unit's gradients are written: a gradient slot, or in_place(), its accumulator.
  int gradient_place(std::size_t unit, int slot) const {
    return slot >= 0 && is_alone() && !accumulated_[unit] ? in_place() : slot;
  }
  int in_place() const { return options_.grad_slots; }
  at::Tensor gradient_buffer(std::size_t unit, int place) const {
    return place == in_place() ? store_->accumulator_tensor(unit) : gradients_->buffer(place);
  }
  /// Those of a manual backward: the plan's trained units lie in place, or in the gradient slots 0, 1, ... in order.
  const std::vector<ParamView>& manual_gradients(const ObjectivePlan& plan, bool without_slots);
  std::size_t chain_length() const { return network_->units().size(); }
  /// Index of the replicated parameters' unit, when there is one.
  std::size_t resident_unit() const { return chain_length(); }

  const std::shared_ptr<const Network> network_;
  EngineOptions options_;
  std::vector<UnitSpec> units_;
  std::vector<FlatLayout> layouts_;
  std::uint64_t layout_hash_ = 0;
  UnitGroups groups_;
  /// of a target network: the unit that it follows
  std::vector<std::optional<std::size_t>> source_of_;
  /// of the objectives seen so far; views and schedules of a plan are made once
  std::vector<std::unique_ptr<ObjectivePlan>> plans_;

  std::atomic<Collective*> collective_{nullptr};
  int rank_ = 0, world_ = 0;
  std::unique_ptr<ShardStore> store_;
  std::unique_ptr<SlotPool> params_, gradients_;
  /// of each unit
  std::vector<std::vector<UpdateInterval>> intervals_;
  /// null without replicated parameters
  std::unique_ptr<ReplicatedParameters> replicated_;
  /// of unit u over its slot u mod K; leaves where they are trained
  std::vector<ParamView> views_;
  /// by unit * (G + 2) + place + 1, made when first needed
  std::vector<std::optional<ParamView>> gradient_views_;
  std::map<std::pair<const ObjectivePlan*, bool>, std::vector<ParamView>> manual_gradients_;

  /// of the blocks' programs, over the steps
  UnitMemory unit_memory_;

  bool has_state_ = false;
  bool has_gradients_ = false;
  bool saw_non_finite_loss_ = false;
  /// of each unit: its accumulator holds gradients of this step
  std::vector<bool> accumulated_;
  std::int64_t updates_ = 0;
};

}  // namespace troupe::model
