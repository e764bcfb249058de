#pragma once

#include <cstdint>
#include <vector>

#include "tests/device/ptx/types.h"

namespace troupe::device::ptx {

/// Who wrote and who read each granule of a block's shared memory, and what orders them. Each warp has a clock that
/// ticks at barriers and warp synchronisations; an earlier access is ordered before a later one if its warp's time is
/// known to the later thread. Two readers a granule are kept, of different warps, so that a write finds at least one
/// reader of another warp. Not thread-safe; one a resident block.
class SharedShadow {
 public:
  /// The last access of a kind: clock, stamp of its instruction, flags, thread.
  using Record = std::uint64_t;
  struct Cell {
    Record writer = 0, reader = 0, other_reader = 0;
  };
  static constexpr std::uint32_t kSeveral = 1 << 10, kAtomic = 1 << 11, kPending = 1 << 12, kStamp = 13;

  /// Ready for a block: nothing is written, clocks begin anew. `bytes` of shared memory, granules of 2^granule bytes.
  void start(std::uint32_t bytes, std::uint32_t granule);

  /// Wrong: bits of these.
  static constexpr std::uint32_t kRace = 1, kUnwritten = 2, kNotWaited = 4;

  std::uint32_t granule() const { return granule_; }
  Cell& cell(std::uint32_t offset) { return cells_[offset >> granule_]; }
  Record record(std::uint32_t warp, std::uint32_t lane, std::uint32_t stamp) const {
    return Record{now_[warp]} << 32 | static_cast<std::uint32_t>(stamp << kStamp) | warp << 5 | lane;
  }

  /// A thread of this block wrote it.
  bool is_written(const Cell& cell) const { return !is_void(cell.writer); }

  std::uint32_t read(Cell& cell, Record now) {
    std::uint32_t wrong = 0;
    if (is_void(cell.writer)) {
      wrong = kUnwritten;
    } else if ((cell.writer & kPending) != 0) {
      wrong = kNotWaited;
    } else if (!ordered(cell.writer, now)) {
      wrong = kRace;
    }
    note_reader(cell, now);
    return wrong;
  }
  /// `changes`: the bytes differ from those that are there. `flags`: kAtomic, kPending.
  std::uint32_t write(Cell& cell, Record now, bool changes, std::uint32_t flags) {
    std::uint32_t wrong = 0;
    if (!is_void(cell.writer)) {
      const bool both_atomic = (cell.writer & flags & kAtomic) != 0;
      if ((cell.writer & kPending) != 0 && flags != kLanding) wrong = kNotWaited;
      if (!ordered(cell.writer, now) && changes && !both_atomic) wrong |= kRace;
    }
    if (!ordered(cell.reader, now) || !ordered(cell.other_reader, now)) wrong |= kRace;
    cell = {now | (flags & (kAtomic | kPending)), 0, 0};
    return wrong;
  }
  /// For write(): the bytes of a cp.async arrive, what was written before is its own mark.
  static constexpr std::uint32_t kLanding = 1;

  /// Lanes of a warp synchronise with each other; `all` of its live lanes or only `lanes`.
  void synchronise(std::uint32_t warp, std::uint32_t lanes, bool all);
  /// These warps synchronise at a barrier of the block.
  void synchronise_warps(std::uint32_t warps);

 private:
  bool is_void(Record record) const { return record >> 32 < base_; }
  bool ordered(Record before, Record now) const {
    const auto clock = static_cast<std::uint32_t>(before >> 32);
    if (clock < base_) return true;
    const std::uint32_t old_warp = before >> 5 & 31, warp = now >> 5 & 31, old_lane = before & 31, lane = now & 31;
    if (old_warp != warp) return known_[warp][old_warp] >= clock;
    if ((old_lane == lane && (before & kSeveral) == 0) || clock <= all_known_[warp]) return true;
    return !lanes_known_[warp].empty() && (before & kSeveral) == 0 &&
           lanes_known_[warp][lane * kLanes + old_lane] >= clock;
  }
  void note_reader(Cell& cell, Record now) {
    const Record old = cell.reader;
    if (!is_void(old)) {
      if ((old >> 5 & 31) != (now >> 5 & 31)) {
        cell.other_reader = old;
      } else if (old >> 32 == now >> 32 && ((old & 31) != (now & 31) || (old & kSeveral) != 0)) {
        now |= kSeveral;
      }
    }
    cell.reader = now;
  }

  std::uint32_t granule_ = 0, base_ = 0;
  std::vector<Cell> cells_;
  std::uint32_t now_[kLanes] = {};
  /// By warp: the time of each other warp that it knows; its own time that all its lanes know; by lane and lane.
  std::uint32_t known_[kLanes][kLanes] = {};
  std::uint32_t all_known_[kLanes] = {};
  std::vector<std::uint32_t> lanes_known_[kLanes];
};

}  // namespace troupe::device::ptx
