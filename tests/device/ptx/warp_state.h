#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tests/device/ptx/finding.h"
#include "tests/device/ptx/program.h"

namespace troupe::device::ptx {

struct BlockState;

/// A cp.async whose bytes have not landed: what one lane's instruction read, and where it goes.
struct PendingCopy {
  std::uint32_t lane = 0, group = 0, to = 0, size = 0;
  std::byte bytes[16] = {};
};

/// What instructions of a warp read and change: registers, local memory, the lanes that are active. The scheduler
/// (warp.h) owns it and sets `active` before each instruction.
struct WarpState {
  std::byte* registers = nullptr;
  const std::byte* constants = nullptr;
  std::uint32_t active = 0;
  /// Lanes that have not exited; lanes that exist, fewer than 32 only in a block's last warp.
  std::uint32_t live = 0, exists = 0;
  std::uint32_t index = 0;
  /// Instructions so far, which tell accesses of one instruction from those of another.
  std::uint32_t stamp = 0;
  /// Local memory lane by lane, and whether a byte is written.
  std::byte* local = nullptr;
  std::uint8_t* local_written = nullptr;
  BlockState* block = nullptr;
  std::vector<PendingCopy> pending;
  /// By lane: how many groups of copies are committed.
  std::uint32_t groups[kLanes] = {};

  template <class T>
  const T* values(Ref ref) const {
    const std::byte* base = (ref.offset & kConstantBit) != 0 ? constants : registers;
    return reinterpret_cast<const T*>(base + (ref.offset & ~kConstantBit));
  }
  template <class T>
  T* destination(Ref ref) {
    return reinterpret_cast<T*>(registers + ref.offset);
  }
  /// Lanes whose value in the register was written.
  std::uint32_t written(Ref ref) const { return *(values<std::uint32_t>(ref) - kHeader / 4); }
  void mark_written(Ref ref, std::uint32_t lanes) { *(destination<std::uint32_t>(ref) - kHeader / 4) |= lanes; }
  void mark_unwritten(Ref ref, std::uint32_t lanes) { *(destination<std::uint32_t>(ref) - kHeader / 4) &= ~lanes; }

  /// Writes `result` into the active lanes.
  template <class T>
  void store(Ref ref, const T* result) {
    T* to = destination<T>(ref);
    if (active == kAllLanes) {
      for (int i = 0; i < kLanes; ++i) to[i] = result[i];
    } else {
      for (int i = 0; i < kLanes; ++i) to[i] = (active >> i & 1) != 0 ? result[i] : to[i];
    }
    mark_written(ref, active);
  }
  void store_mask(Ref ref, std::uint32_t result) {
    std::uint32_t& to = *destination<std::uint32_t>(ref);
    to = (to & ~active) | (result & active);
    mark_written(ref, active);
  }

  /// Reports lanes that read a register that was never written.
  void require_written(const Op& op, Ref ref) {
    const std::uint32_t missing = active & ~written(ref);
    if (missing != 0) report_unwritten(op, missing);
  }

  /// Notes a finding of these lanes.
  void report(FindingKind kind, const Op& op, std::uint32_t lanes, std::string_view text, std::uint64_t address = 0,
              const Allocation* allocation = nullptr);
  void report_unwritten(const Op& op, std::uint32_t lanes);
};

}  // namespace troupe::device::ptx
