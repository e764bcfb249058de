#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/enum_names.h"

namespace troupe::model {

/// How a unit's values come about.
enum class UnitKeep : std::uint8_t {
  /// updated by an optimizer: master, m, v and accumulator
  trained,
  /// a target network: the moving average of another unit
  averaged,
  /// never changed after loading: no master, no moments
  frozen,
};

/// What a rank keeps of every unit, in the order of a snapshot: the values, an optimizer's two moments, and the moving
/// average of the values.
enum class StateKind : std::uint8_t { master, m, v, ema };

/// One memory of a rank.
enum class ArenaKind : std::uint8_t {
  /// shards of trained units, f32, but that moments may be bf16
  master,
  m,
  v,
  ema,
  gradient,
  /// masters as they are gathered, where that is bf16
  copy,
  /// shards of target networks, f32, and as they are gathered
  averaged,
  averaged_copy,
  /// shards of frozen units in the dtype that is gathered
  frozen,
  /// two slots for what is offloaded of one unit's state, f32
  state_slots,
  /// K slots for whole units
  slots,
  /// G slots for whole gradients, f32, and behind them, where gradients are added up whole, those of all units
  gradient_slots,
  /// what the ranks sent of one unit's gradient, f32 [world, shard] or [replicas, shard]
  staging,
  /// the replicated parameters, whole
  replicated,
  /// their gradients, f32
  replicated_gradients,
  /// two micro-batches
  inputs,
  /// of each unit: its result and what its backward reads
  activations,
  /// gradients of the residual stream and of the conditioning
  carry_gradients,
  /// f64: of each unit its sum of squares, then losses, what the ranks agreed on and the clip factors
  scalars,
  /// what a snapshot is copied to
  snapshot,
  /// behind the device's own memory: states of trained units, f32, unit by unit
  offloaded,
  /// and what each block keeps for its backward
  stashed,
};
constexpr auto enum_names(ArenaKind) {
  return std::array{"master",
                    "m",
                    "v",
                    "ema",
                    "gradient",
                    "copy",
                    "averaged",
                    "averaged_copy",
                    "frozen",
                    "state_slots",
                    "slots",
                    "gradient_slots",
                    "staging",
                    "replicated",
                    "replicated_gradients",
                    "inputs",
                    "activations",
                    "carry_gradients",
                    "scalars",
                    "snapshot",
                    "offloaded",
                    "stashed"};
}
inline constexpr std::size_t kArenas = 22;

/// Bytes [begin, begin + bytes) of an arena: what an operation names instead of an address.
struct ArenaRange {
  ArenaKind arena = ArenaKind::master;
  std::int64_t begin = 0;
  std::int64_t bytes = 0;
  bool operator==(const ArenaRange&) const = default;
};
bool overlap(const ArenaRange& a, const ArenaRange& b);

/// What an operation has to do.
struct Work {
  /// read and written by sums, optimizers and copies; what a unit's pass does its program knows
  double moved_bytes = 0;
  /// to other ranks
  double sent_bytes = 0;
  /// to and from the memory behind the device's own
  double offloaded_bytes = 0;
};

struct UnitShape {
  std::string name;
  /// elements of its flat buffer over all ranks: a multiple of world
  std::int64_t padded = 0;
  UnitKeep keep = UnitKeep::trained;
  /// of a target network: the unit that it follows
  int source = -1;
  /// it uses replicated parameters
  bool has_replicated = false;
  /// bytes that its forward leaves for its backward; 1 where only the run will tell
  std::int64_t kept = 1;
};

/// All that a rank's memory and operations depend on.
struct StepShape {
  /// among those that share the parameters
  int rank = 0, world = 1;
  /// such groups, which add up their sums once a step
  int replicas = 1;
  /// the chain's units, and behind them the unit of the replicated parameters, if any
  std::vector<UnitShape> units;
  int chain = 0;
  /// bytes of an element that is gathered: 4 or 2
  std::int64_t param_bytes = 4;
  /// of an element of m and of v: 4 or 2
  std::int64_t moment_bytes = 4;
  /// Trained units have a moving average of their values.
  bool keeps_average = false;
  /// K, units gathered ahead plus the one in use; G, gradients under way plus the one being written
  int param_slots = 3, grad_slots = 2;
  /// ZeRO-1: the chain's gradients are added up whole on every rank and summed over the ranks once a step; their
  /// accumulators lie in them
  bool whole_gradients = false;
  /// Gradients are summed over the ranks by a reduce-scatter, in the collective's order, in place of an exchange of
  /// parts that are added up in rank order.
  bool reduce_scatters = false;
  /// States lie behind the device's own memory and come into slots for their update: moments, and the masters where
  /// they are not what is gathered.
  bool offloads_states = false;
  /// Blocks share that many places for what they keep, block u place u mod this; it lies behind the device's own memory
  /// in between. At least 2; 0: everything stays.
  int stash_slots = 0;
  /// bytes of one micro-batch; 1 where only the run will tell
  std::int64_t input_bytes = 1;

  /// A rank that is alone has everything in place: units are read from its shards, and the first gradients of a step
  /// are written to the accumulators. Nothing is gathered, exchanged or summed.
  bool is_alone() const { return world == 1; }
  bool adds_up_whole() const { return whole_gradients && !is_alone(); }
  bool offloads() const { return offloads_states || stash_slots > 0; }
  bool has_replicated() const { return static_cast<int>(units.size()) > chain; }
  /// Index of the replicated parameters' unit.
  int resident() const { return chain; }
};

/// Where everything of a rank lies. Units of one arena follow each other in order; a trained unit has the same offsets,
/// in elements, in master, m, v, ema and gradient. Pure; placement/memory_model.h counts by the same rules.
class ArenaPlan {
 public:
  explicit ArenaPlan(StepShape shape);

  const StepShape& shape() const { return shape_; }
  /// Size of an arena; 0: it is not needed.
  std::int64_t bytes(ArenaKind arena) const { return bytes_[static_cast<std::size_t>(arena)]; }

  /// Elements of this rank's shard.
  std::int64_t elements(int unit) const { return at(unit).padded / shape_.world; }
  /// What there is of a unit: the master, and of a trained one m, v and, where averages are kept, ema.
  std::span<const StateKind> kinds(int unit) const;
  /// Where one of kinds() is kept. The master of a frozen unit is its values.
  ArenaRange state(StateKind kind, int unit) const;
  /// Of a trained unit.
  bool is_offloaded(StateKind kind) const {
    return shape_.offloads_states && (kind != StateKind::master || shape_.param_bytes != 4);
  }
  /// Where a trained unit's state is updated: in a slot if it is offloaded.
  ArenaRange working_state(StateKind kind, int unit, int slot) const;
  /// All that is offloaded of a trained unit, and a slot for it.
  ArenaRange offloaded(int unit) const;
  ArenaRange state_slot(int unit, int slot) const;
  ArenaRange gradient(int unit) const;
  /// What an all-gather of the unit sends.
  ArenaRange gathered(int unit) const;
  /// Where a unit of the chain is read: its slot, or in place. Of the replicated parameters likewise.
  ArenaRange parameters(int unit) const;
  int slot_of(int unit) const { return unit % shape_.param_slots; }
  ArenaRange gradient_slot(int slot, int unit) const;
  /// Where StepShape::adds_up_whole().
  ArenaRange whole_gradient(int unit) const;
  /// What the other ranks sent of a unit's gradient, or its sum over the ranks.
  ArenaRange staging(int unit) const;
  /// The replicas' sums of this rank's shard.
  ArenaRange replica_staging(int unit) const { return {ArenaKind::staging, 0, shape_.replicas * gradient(unit).bytes}; }
  /// Gradients of the replicated parameters as backward writes them, unless in place.
  ArenaRange replicated_gradients() const;
  ArenaRange input(int micro) const { return {ArenaKind::inputs, micro % 2 * shape_.input_bytes, shape_.input_bytes}; }
  ArenaRange activation(int unit) const;
  /// Where what a block keeps lies in between.
  ArenaRange stashed(int unit) const { return {ArenaKind::stashed, activation_[index(unit)], at(unit).kept}; }
  /// A block, with StepShape::stash_slots.
  bool is_stashed(int unit) const { return shape_.stash_slots > 0 && unit > 0 && unit + 1 < shape_.chain; }
  ArenaRange carry_gradients() const { return {ArenaKind::carry_gradients, 0, 1}; }
  ArenaRange squares(int unit) const { return {ArenaKind::scalars, unit * kScalar, kScalar}; }
  /// Of the step's micro-batches on a device.
  ArenaRange losses() const { return {ArenaKind::scalars, num_units() * kScalar, kScalar}; }
  /// All sums of squares, losses, and what the ranks agree on.
  ArenaRange votes() const { return {ArenaKind::scalars, 0, (num_units() + 1) * kScalar}; }
  ArenaRange clip() const { return {ArenaKind::scalars, (num_units() + 1) * kScalar, kScalar}; }
  /// Where one of kinds() lies in a snapshot: units in order but for frozen ones, of each its kinds in order.
  ArenaRange snapshot(StateKind kind, int unit) const;

 private:
  static constexpr std::int64_t kScalar = 8;
  /// Every unit of the chain has a slot of its own size.
  bool has_all_slots() const { return shape_.param_slots == shape_.chain; }
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  const UnitShape& at(int unit) const { return shape_.units[index(unit)]; }
  int num_units() const { return static_cast<int>(shape_.units.size()); }
  std::span<const StateKind> trained_kinds() const;
  /// of an element of one of a unit's kinds()
  std::int64_t width(StateKind kind, UnitKeep keep) const;
  /// Of all kinds that are offloaded, and of those before one.
  std::int64_t offloaded_width() const;
  std::int64_t offloaded_width_before(StateKind kind) const;
  std::int64_t& size(ArenaKind arena) { return bytes_[static_cast<std::size_t>(arena)]; }

  StepShape shape_;
  /// of each unit: elements before it among those that are kept alike, bytes before it in a snapshot and in what is
  /// kept where it is kept
  std::vector<std::int64_t> begin_, snapshot_, activation_;
  /// of each unit of the chain: bytes before it where all units have a slot, and where gradients are added up whole
  std::vector<std::int64_t> slot_, whole_;
  std::int64_t slot_bytes_ = 0, gradient_slot_bytes_ = 0, state_slot_bytes_ = 0, stash_slot_bytes_ = 0,
               kept_outside_ = 0;
  std::array<std::int64_t, kArenas> bytes_{};
};

}  // namespace troupe::model
