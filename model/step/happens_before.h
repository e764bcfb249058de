#pragma once

#include <array>
#include <span>
#include <vector>

#include "model/step/op.h"

namespace troupe::model {

/// A vector clock (Fidge 1988, Mattern 1989): of each stream, the last operation that is done for certain, by index;
/// -1: none.
using VectorClock = std::array<int, kOpStreams>;

/// Of each operation, what is done when it begins, by the order of the streams and by the waits; its own stream's
/// operations before it are.
std::vector<VectorClock> clocks_of(std::span<const Op> operations);

/// Whether operation `earlier` is done when one with that clock begins.
inline bool is_before(const Op& operation, int earlier, const VectorClock& clock) {
  return clock[static_cast<std::size_t>(operation.stream)] >= earlier;
}

/// Gives operations the waits that their buffers ask for, one after the other in program order: a reader comes after
/// the last writer, a writer after the last writer and the readers since. A wait that others imply is left out.
class EventOrder {
 public:
  /// Sets `operations.back()`'s waits, and is_awaited of those that it waits for.
  void add(std::vector<Op>& operations);

 private:
  /// What has touched a range last.
  struct Region {
    ArenaRange range;
    int writer = -1;
    /// since then, by stream: the last reader
    VectorClock readers;
  };
  std::array<std::vector<Region>, kArenas> regions_;
  std::vector<VectorClock> clocks_;
  VectorClock last_of_stream_ = [] {
    VectorClock none;
    none.fill(-1);
    return none;
  }();
};

}  // namespace troupe::model
