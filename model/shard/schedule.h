#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/enum_names.h"

namespace troupe::model {

/// One step of a rank's work on a micro-batch.
enum class OpKind : std::uint8_t {
  /// start the all-gather of a unit into a parameter slot
  gather,
  /// wait until it has arrived
  wait_gather,
  /// run the unit, keeping its inputs; the last unit is recorded for its backward
  forward,
  /// recompute the unit with gradients; its parameter gradients go to a gradient slot
  backward,
  /// start the reduce-scatter of a gradient slot
  reduce,
  /// wait for it and add the rank's part to the accumulator; the gradient slot is free
  wait_reduce,
};
constexpr auto enum_names(OpKind) {
  return std::array{"gather", "wait_gather", "forward", "backward", "reduce", "wait_reduce"};
}

/// One operation; slots that it does not use are -1.
struct Op {
  OpKind kind;
  int unit = 0;
  /// parameter slot: gather, wait_gather, forward, backward
  int slot = -1;
  /// gradient slot: backward of a trainable unit, reduce, wait_reduce
  int grad_slot = -1;
  int micro = 0;
  bool operator==(const Op&) const = default;
};

/// train: forward and backward of every micro-batch; forward_only: no backward, no gradient slots.
enum class ScheduleMode : std::uint8_t { train, forward_only };

/// All that a schedule depends on.
struct ScheduleSpec {
  int num_units = 0;
  /// K: units gathered ahead, plus the one in use
  int param_slots = 3;
  /// G: reduce-scatters under way, plus the one being written
  int grad_slots = 2;
  int micro_batches = 1;
  ScheduleMode mode = ScheduleMode::train;
  /// unit that each parameter slot holds at the start, -1 for none; empty: all none
  std::vector<int> held = {};
  /// of each unit; a frozen one has a backward but no gradient slot; empty: all
  std::vector<bool> trainable = {};
};

using Schedule = std::vector<Op>;

/// The order of a rank's work, in unit order forward and reverse order backward
/// (docs/learner-engine.md#schedule):
///   - unit u uses parameter slot u mod K; a unit that its slot still holds is not gathered again, so that the last
///     K units stay for the turn, and K >= num_units means one gather per step;
///   - gathers run K - 1 units ahead; backward waits only for the reduce-scatter that last used its gradient slot;
///   - every operation that is started is waited for before the micro-batch ends.
/// Pure: the same spec gives the same operations on every rank, which keeps collectives in one order.
Schedule make_schedule(const ScheduleSpec& spec);

/// One operation a line, such as "gather      u3 p0" or "backward    u2 p2 g1 m0".
std::string to_string(const Schedule& schedule);

}  // namespace troupe::model
