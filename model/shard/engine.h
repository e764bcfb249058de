#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "comm/collective/collective.h"
#include "device/host_device.h"
#include "model/shard/engine_memory.h"
#include "model/shard/engine_options.h"
#include "model/shard/network.h"
#include "model/shard/objective_plan.h"
#include "model/shard/step_vote.h"
#include "model/shard/unit_tape.h"

namespace troupe::model {

class StepExecutor;
struct StepGroups;
struct StepCall;

/// Where an engine's state comes from: a checkpoint, other weights, or another engine's snapshot. Units are those of
/// Engine::units(); of a frozen one, and of a target network, only the master is asked for. A source without averages
/// gives masters in their place.
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

/// What a rank tells the others of a step, f64: summed over ranks, and their maximum.
struct StepNumbers {
  std::vector<double> sums, maxima;
};
using StepNumbersOf = std::function<StepNumbers(const std::vector<MicroResult>&)>;

/// One rank of a sharded learner: runs a Network whose parameters lie in flat shards over the ranks of a Collective
/// (docs/learner-engine.md; the sharding of ZeRO-3, arXiv:1910.02054). One step is: accumulate once per micro-batch,
/// finish_step; or vote, then commit or discard.
///
/// All ranks call the same functions in the same order with the same options; the batches differ. One thread at a time,
/// but abort() from any. After an error from enqueue, results, accumulate, finish_step, vote, forward or gather_views
/// the open step is lost and the group unusable: destroy that collective (which ends what it still has under way in the
/// engine's buffers), make a new one, attach it, and load() the last committed state. Errors of those: aborted,
/// deadline_exceeded (from the collective), failed_precondition (no group or no state; ranks that differ in layout or
/// updates), internal (the network threw).
///
/// A device works behind the host: enqueue and commit return before it is done; results, vote and finish_step wait for
/// it.
///
/// An *objective* is another Network over the same units, such as one phase of an actor-critic algorithm. Its UnitSpecs
/// may say `trainable = false` of units that this phase only uses: they get no gradient from it. It must live as long
/// as the engine.
class Engine {
 public:
  /// `device` outlives the engine, which keeps its shards and slots there and runs on its streams. A device that is not
  /// the host comes with its kernels, which outlive the engine too; there every unit of the network has a program,
  /// parameters are updated by AdamW, and the groups are those of join_nccl_group.
  Engine(std::shared_ptr<const Network> network, EngineOptions options, device::Device& device = device::host_device(),
         kernels::DeviceKernels* device_kernels = nullptr);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Joins a group, which must outlive its use here. Allocates for (rank, world) if they changed, which loses the
  /// state; else keeps it. With replicas an operation of all ranks. Errors, after which there is no group: those of
  /// Arenas::make, Collective::split and Collective::register_memory, invalid_argument (the ranks are no multiple of
  /// EngineOptions::sharing_ranks).
  Result<void> attach(Collective& collective);
  /// Values of step 0, a function of the seed and the parameters' names; target networks are copies of what they
  /// follow, averages of the masters; moments zero, updates 0.
  void initialise(std::uint64_t seed);
  /// Reads this rank's shards from `source`; padding becomes zero. Local: ranks may load from different places, and
  /// vote finds out when their updates differ. Errors: those of `source`, after which the engine has no state.
  Result<void> load(const StateSource& source);
  bool has_state() const noexcept { return has_state_; }

  /// Forward and backward of one micro-batch; adds d(weight * loss) summed over ranks to the gradients, or replaces
  /// them when `first`. With weight = 1 / (micro-batches of the global batch, over all ranks) the sum is the mean.
  /// `objective`: null for the network itself. Returns when it is enqueued; the batch's values are taken then.
  Result<void> enqueue(const Batch& batch, double weight, bool first, const Network* objective = nullptr);
  /// Of the open step's micro-batches in their order, once all of them are done.
  Result<std::vector<MicroResult>> results();
  /// enqueue, and the result of this micro-batch.
  Result<MicroResult> accumulate(const Batch& batch, double weight, bool first, const Network* objective = nullptr);
  /// Ends a step after its last micro-batch: a vote, then the commit of the groups of `rates`, or discard() where the
  /// vote is not finite. `numbers` forms the caller's from the step's results. On a device vote and commit are enqueued
  /// before the host waits.
  Result<StepVote> finish_step(const GroupRates& rates, const StepNumbersOf& numbers);
  /// Of all groups at one learning rate.
  Result<StepVote> finish_step(double lr, const StepNumbersOf& numbers);
  /// Agrees on the gradient norms and on whether the step is usable. After the last micro-batch of a step. Two
  /// all-reduces of f64: the sums of squares of each group and `sums`, then `maxima` with what identifies layout and
  /// updates. All ranks pass as many numbers.
  Result<StepVote> vote(std::vector<double> sums, std::vector<double> maxima);
  /// Clips and updates this rank's shards (AdamW, model/optim/adamw.h, or Sophia; EngineOptions::update_rules) with the
  /// accumulated gradient g times
  ///     min(1, clip_grad_norm / (norm + 1e-6))
  /// of its clip set; `vote` must be finite. Local: no rank waits for another.
  /// With EngineOptions::lazy_optimizer the work is done by whatever reads the state next.
  void commit(double lr, const StepVote& vote);
  /// The same of the named groups alone, each at its learning rate. The others keep parameters, moments and updates bit
  /// for bit; their gradients are forgotten. A group whose units no objective trained in this step is updated with
  /// gradients of zero.
  void commit(const GroupRates& rates, const StepVote& vote);
  /// With EngineOptions::sophia, between a vote and the step's own micro-batches: h = b2 h + (1 - b2) factor g^2 of the
  /// accumulated g, the gradient of losses with sampled labels (model/loss/sampled_label.h), and forgets g. `factor` is
  /// the number of micro-batches that g is the mean of. `vote` must be finite. Local. Parameters, momentum and updates
  /// stay as they are; a discard() of the step does not take it back.
  void estimate_curvature(double factor, const StepVote& vote);
  /// Forgets the gradients; parameters, moments and updates stay as they are, bit for bit.
  void discard();
  /// Runs the network, or an objective, without gradients. All ranks must call it.
  Result<Outputs> forward(const Batch& batch, const Network* objective = nullptr);

  /// Moves target networks (UnitSpec::average_of) toward what they follow: t = (1 - tau) t + tau s, in f32 on this
  /// rank's shards, whatever is gathered. Local. `targets`: names of units; empty: all. Not while gradients are
  /// accumulated.
  void average(double tau, const std::vector<std::string>& targets = {});

  /// Copies this rank's shards of the named units into `out`, one vector for each. `kind`: master, or with
  /// EngineOptions::ema_decay ema, which gives the master of a unit without an average; a frozen unit has to be one
  /// gathered in f32. Rank r has elements [r * n, (r + 1) * n) of a unit's flat buffer, n =
  /// layouts()[u].shard(world()). Local. Needs a state and a group; first runs what a lazy optimizer has left.
  void publish(const std::vector<std::string>& names, StateKind kind, std::vector<std::vector<float>>& out);
  /// Whole values of units on this rank by unit name, f32, owned by the result; no leaves. `kind` as for publish. All
  /// ranks must call it.
  Result<std::map<std::string, ParamView>> gather_views(const std::vector<std::string>& names,
                                                        StateKind kind = StateKind::master);

  /// This rank's state but for what never changes: for each unit in order, master, m, v and, with
  /// EngineOptions::ema_decay, ema of its shard; of a target network its values alone; of a frozen unit nothing.
  /// Little-endian f32, but moments in EngineOptions::moment_dtype (docs/learner-engine.md). First runs what a lazy
  /// optimizer has left.
  std::size_t snapshot_bytes() const;
  void snapshot(std::span<std::byte> out);
  /// This rank's shard of a frozen unit, 1-D, in the dtype that is gathered: on cores where it lies, valid until an
  /// attach() with another rank or world, of a device a copy.
  at::Tensor frozen_shard(std::size_t unit) const;

  /// Of this rank since it has a state.
  OptimizerCounts counts() const noexcept { return core_.replica == 0 ? core_.counts : OptimizerCounts(); }
  /// Commits behind this state, of whatever groups.
  std::int64_t updates() const noexcept { return core_.updates; }
  /// Of each unit group.
  std::map<std::string, std::int64_t> group_updates() const;
  /// Among those that share the parameters: all of the group, or those of this replica
  /// (EngineOptions::sharing_ranks).
  int rank() const noexcept { return core_.rank; }
  int world() const noexcept { return core_.world; }
  /// Replicas have the same state.
  int replica() const noexcept { return core_.replica; }
  const Network& network() const noexcept { return *core_.network; }
  /// What has state: the chain's units, and after them the replicated parameters, if any (state_units).
  const std::vector<UnitSpec>& units() const noexcept { return core_.units; }
  /// Index in units(). An unknown name aborts the process.
  std::size_t unit_index(std::string_view name) const;
  /// Of units().
  const std::vector<FlatLayout>& layouts() const noexcept { return core_.layouts; }
  std::uint64_t layout_hash() const noexcept { return core_.layout_hash; }
  /// Bytes allocated: "shards" (master, m, v, ema, accumulator, bf16 copy, frozen values, target networks, slots for
  /// offloaded states), "offloaded" (behind the device's own memory), "slots"
  /// (parameter slots, replicated parameters) and "gradients" (gradient slots, gradients of the replicated parameters,
  /// what the ranks sent of one unit's).
  std::map<std::string, std::int64_t> bytes() const;

  /// Makes the call under way, and later ones, fail with `aborted`. Any thread, while the attached collective exists.
  void abort(const std::string& why);

 private:
  /// One call's part of a step, and what the buffers hold after it.
  struct Part {
    std::vector<Op> operations;
    StepState after;
  };
  /// A micro-batch that a device may still work on.
  struct MicroBatch;
  enum class PartKind : std::uint8_t { micro_batch, forward, vote, curvature, update, postponed, average };
  /// Which objective (null: none), which kind of call, of which units, and from what the buffers hold.
  using PartKey = std::tuple<const ObjectivePlan*, PartKind, std::vector<bool>, StepState>;

  /// Waits for all that was started. An aborted group fails it, even where the streams went on.
  Result<void> finish();
  /// Waits for the micro-batches that are enqueued, and keeps their results.
  Result<void> take_results();
  Result<void> split(Collective& collective);
  Result<void> register_memory(const StepGroups& groups);
  Result<void> check_ready(const char* what) const;
  Result<void> check_open(const char* what) const;
  ObjectivePlan& plan_of(const Network* objective);
  /// Starts a part, which `build` writes where it is not known yet.
  Result<void> start(const ObjectivePlan* plan, PartKind kind, const std::vector<bool>& units,
                     const std::function<void(StepBuilder&)>& build, StepCall& call);
  /// Groups by index, of `rates` or all at one.
  std::map<std::size_t, double> rates_of(const GroupRates& rates) const;
  std::map<std::size_t, double> rates_of(double lr) const;
  Result<StepVote> end_step(const std::map<std::size_t, double>& rates, const StepNumbersOf& numbers);
  /// Counts an update of those groups, and starts it.
  Result<void> start_update(const std::map<std::size_t, double>& rates, const StepVote& vote);
  /// It was skipped.
  void take_back_update(const std::map<std::size_t, double>& rates);
  Result<void> start_vote(StepCall& call);
  void update(const std::map<std::size_t, double>& rates, const StepVote& vote);
  bool has_postponed() const;
  /// Runs what a commit has left for later.
  void run_postponed();
  Error give_up(Error error);
  /// What a unit has of that kind: its master where it has no average.
  StateKind kept(StateKind kind, std::size_t unit) const;
  void start_from(std::int64_t updates);
  void write(StateKind kind, std::size_t unit, std::span<const float> values);

  device::Device& device_;
  EngineMemory core_;
  /// of the objectives seen so far; parts of a plan are made once
  std::vector<std::unique_ptr<ObjectivePlan>> plans_;
  std::map<PartKey, Part> parts_;

  std::atomic<Collective*> collective_{nullptr};
  /// with replicas: those that share the parameters, and those that hold the same shard
  std::unique_ptr<Collective> shard_group_, replica_group_;
  std::unique_ptr<StepExecutor> executor_;
  /// of the open step, in order: those without results yet, behind those that have them
  std::vector<std::unique_ptr<MicroBatch>> enqueued_;
  std::vector<MicroResult> results_;
  /// vote and rates of the last commit, while something of it is postponed
  std::pair<StepVote, std::map<std::size_t, double>> last_commit_;
  bool has_state_ = false;
  /// a micro-batch has been accumulated since the last step
  bool is_open_ = false;
};

}  // namespace troupe::model
