#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/device/standin/clock.h"

namespace troupe::device::standin {

/// A range of addresses that an operation touched.
struct Access {
  std::uint64_t begin = 0, end = 0;
  bool writes = false;
};

/// Who touched which bytes last, of all operations of a process: finds two that touch the same bytes, one of them
/// writing, where no wait orders them. Ranges are those that were really touched. Not thread-safe.
class AccessLog {
 public:
  /// An operation that the log remembers.
  struct Operation {
    Stamp stamp;
    std::string name;
  };
  using OperationPtr = std::shared_ptr<const Operation>;

  /// Two operations without order, and bytes that both touch.
  struct Hazard {
    OperationPtr earlier;
    std::uint64_t begin = 0, end = 0;
    bool earlier_writes = false;
  };

  /// Remembers the access, and returns the first of what it is in conflict with. `seen`: what happened before it.
  std::optional<Hazard> touch(const Access& access, const OperationPtr& operation, const VectorClock& seen);
  /// The bytes are given back: what comes there later is other memory.
  void forget(std::uint64_t begin, std::uint64_t end);

 private:
  struct Segment {
    std::uint64_t end = 0;
    OperationPtr writer;
    /// since the writer, at most one of each stream
    std::vector<OperationPtr> readers;
  };
  /// Cuts the segments there, so that one begins at `at` if any holds it.
  void cut(std::uint64_t at);

  /// by first address, not overlapping
  std::map<std::uint64_t, Segment> segments_;
};

}  // namespace troupe::device::standin
