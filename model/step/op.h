#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/enum_names.h"
#include "model/step/arena_plan.h"

namespace troupe::model {

/// One piece of a rank's step.
enum class OpKind : std::uint8_t {
  /// the micro-batch is taken over
  input,
  /// all ranks' shards of a unit, or of the replicated parameters, become whole
  gather,
  /// run the unit, keeping what its backward needs
  forward,
  /// what a block keeps goes to the memory behind the device's own, and comes back for its backward
  stash_out,
  stash_in,
  /// differentiate the unit; its parameter gradients go to a gradient slot, or in place
  backward,
  /// all units forward and backward at once, by the network's manual backward
  network,
  /// every rank gets the others' gradients of its shard of a unit
  exchange,
  /// in place of an exchange: the sum of a unit's gradients over the ranks, added up by the collective on its way
  reduce_scatter,
  /// every replica gets the others' sums of this rank's shard
  replicate,
  /// they are added up in rank order into the accumulator; alone, or behind a reduce_scatter: one part is
  sum,
  /// a unit's gradient in a slot is added to its whole one
  add,
  /// sum of squares of a unit's accumulator
  square,
  /// the ranks agree on norms and on whether the step is usable
  agree,
  /// clip factors from the norms
  clip,
  /// a second-order optimizer's estimate of the curvature moves toward the squares of a unit's accumulator
  curvature,
  /// what is offloaded of a unit's state comes from the memory behind the device's own
  fetch,
  /// the optimizer, on this rank's shard of a unit
  update,
  /// and goes back there
  store,
  /// a target network moves toward what it follows
  average,
  /// this rank's state of a unit is copied away
  snapshot,
  /// this rank's masters of a unit, or their averages, are copied to the host
  publish,
};
constexpr auto enum_names(OpKind) {
  return std::array{"input",   "gather",   "forward",        "stash_out", "stash_in", "backward",
                    "network", "exchange", "reduce_scatter", "replicate", "sum",      "add",
                    "square",  "agree",    "clip",           "curvature", "fetch",    "update",
                    "store",   "average",  "snapshot",       "publish"};
}

/// Operations of one stream run in order; those of different streams beside each other, ordered by Op::waits
/// alone.
enum class OpStream : std::uint8_t { compute, gather, reduce, optimizer, copy, offload };
constexpr auto enum_names(OpStream) {
  return std::array{"compute", "gather", "reduce", "optimizer", "copy", "offload"};
}
inline constexpr std::size_t kOpStreams = 6;

/// A buffer that an operation reads, or writes (and perhaps reads too).
struct Access {
  ArenaRange range;
  bool writes = false;
};

/// What happens, where, to which buffers, and after what. Numbers that do not apply are -1.
struct Op {
  OpKind kind = OpKind::input;
  OpStream stream = OpStream::compute;
  int unit = -1;
  int micro = -1;
  /// gradient slot
  int grad_slot = -1;
  /// fetch, update, store: where the unit's offloaded state is worked on
  int state_slot = -1;
  /// backward, network: gradients go to the accumulators at once, those of units and of the replicated parameters
  bool in_place = false, replicated_in_place = false;
  /// backward: the gradient is the first part of the whole one
  bool is_whole = false;
  /// sum: of that many parts
  int parts = 1;
  /// sum: adds to the accumulator instead of replacing it. update, curvature: there is a gradient.
  bool adds = false;
  Work work = {};
  /// of a gather, an exchange, a replicate and a sum: first what it reads
  std::vector<Access> accesses = {};
  /// earlier operations of other streams that have to be done first, by index
  std::vector<int> waits = {};
  /// a later one of another stream waits for it
  bool is_awaited = false;
};

}  // namespace troupe::model
