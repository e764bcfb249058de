#pragma once

#include <compare>
#include <utility>
#include <vector>

#include "model/step/arena_plan.h"
#include "model/step/happens_before.h"
#include "model/step/op.h"

namespace troupe::model {

/// What a rank's buffers hold between the parts of a step. The same on all ranks.
struct StepState {
  /// unit that each parameter slot holds, -1 for none
  std::vector<int> held;
  /// the replicated parameters are what the shards say
  bool replicated_is_current = false;
  /// of each unit: its accumulator holds gradients of this step
  std::vector<bool> accumulated;
  /// of each unit: its whole gradient holds what this rank found in this step, and no sum over the ranks yet
  std::vector<bool> whole;
  /// of each unit: its update was postponed and has not run
  std::vector<bool> postponed;

  /// Nothing is held or accumulated.
  static StepState empty(const StepShape& shape);
  auto operator<=>(const StepState&) const = default;
};

/// How a micro-batch is differentiated.
enum class Differentiation : std::uint8_t {
  /// unit by unit
  units,
  /// by the network's manual backward, all at once; K >= units, and a gradient slot for each that is trained
  manual,
};

/// Writes a step down: its parts in the order of a rank's calls, as operations with the waits that their buffers ask
/// for (docs/learner-engine.md#schedule). Unit u uses parameter slot u mod K; a unit that its slot still holds is not
/// gathered again, so that the last K units stay for the turn from forward to backward and the first K for the next
/// micro-batch; gathers run K - 1 units ahead. Pure: the same calls give the same operations on every rank, which keeps
/// collectives in one order. `plan` outlives the builder.
class StepBuilder {
 public:
  StepBuilder(const ArenaPlan& plan, StepState state);

  /// Forward and backward of the next micro-batch; `trains` of each unit of the chain.
  void micro_batch(const std::vector<bool>& trains, Differentiation differentiation);
  void forward_only();
  /// After the last micro-batch.
  void vote();
  /// After a vote over gradients of sampled labels: of those units; ends what was accumulated.
  void curvature(const std::vector<bool>& units);
  /// Of those units, by index in StepShape::units; ends the step.
  void update(const std::vector<bool>& units);
  /// The same, but the update of a unit with a gradient runs just before its values are gathered, or read in place, the
  /// next time: beside the forward of the units before it. A part that reads the state otherwise runs all of them
  /// first.
  void postpone_update(const std::vector<bool>& units);
  /// All that was postponed.
  void run_postponed();
  void average(const std::vector<bool>& units);
  void snapshot();
  /// Of those units, by index in StepShape::units, one of their kinds of state.
  void publish(const std::vector<std::pair<std::size_t, StateKind>>& what);

  const StepState& state() const { return state_; }
  const std::vector<Op>& operations() const { return operations_; }

 private:
  int chain() const { return plan_.shape().chain; }
  bool has_replicated() const { return plan_.shape().has_replicated(); }
  bool is_alone() const { return plan_.shape().is_alone(); }
  bool is_accumulated(int unit) const { return state_.accumulated[static_cast<std::size_t>(unit)]; }

  void emit(Op operation);
  Work work_of(const Op& operation) const;
  void take_input();
  void gather(int unit);
  void gather_replicated();
  void emit_gather(int unit);
  void forward_pass(bool has_backward);
  void backward_pass(const std::vector<bool>& trains);
  void backward(int unit, bool trains, int grad_slot, bool replicated_in_place);
  void manual(const std::vector<bool>& trains);
  /// A backward's gradient becomes part of the whole one.
  void add_up(int unit, int grad_slot, bool is_first);
  void mark_accumulated(int unit) { state_.accumulated[static_cast<std::size_t>(unit)] = true; }
  /// From where a backward put a unit's gradient to this rank's accumulator. `grad_slot`: -1 where it is none of them.
  void reduce(int unit, const ArenaRange& gradient, int grad_slot);
  void stash_out(int unit);
  /// Unless it is there.
  void stash_in(int unit);
  /// The replicas' sums become one.
  void sum_over_replicas(int unit);
  bool replicated_in_place() const;
  /// What was postponed of the unit.
  void catch_up(int unit);
  void clip();
  void fetch(int unit);
  /// What is offloaded of a unit's state comes to a slot, and of `next` (-1: none) to the other; the unit's slot.
  int bring_state(int unit, int next);
  void put_back_state(int unit);
  /// `next`: the unit that is updated after it, or -1.
  void update(int unit, bool has_gradient, int next);
  /// Its slot no longer holds what the shards say.
  void values_changed(int unit);
  /// What running a unit reads.
  std::vector<Access> unit_reads(int unit) const;

  const ArenaPlan& plan_;
  StepState state_;
  EventOrder order_;
  std::vector<Op> operations_;
  int micro_ = -1;
  /// clip factors are there; slot of a unit whose state is fetched and not stored, slot that is fetched to next
  bool has_clip_ = false;
  std::vector<int> state_slot_;
  int next_state_slot_ = 0;
  /// of each stash slot: the block whose forward or stash_in wrote it last
  std::vector<int> stash_;
};

}  // namespace troupe::model
