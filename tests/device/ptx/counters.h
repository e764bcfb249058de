#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/device/ptx/program.h"

namespace troupe::device::ptx {

/// What was counted of one instruction, one source line or one kernel. One count an instruction of a warp; `lanes`
/// counts its active lanes.
struct Counts {
  std::uint64_t warps = 0, lanes = 0;
  /// Of global accesses: 32-byte sectors touched, and distinct bytes used of them.
  std::uint64_t sectors = 0, bytes = 0;
  /// Of shared accesses: wavefronts, and how many of them bank conflicts added.
  std::uint64_t wavefronts = 0, conflicts = 0;

  void add(const Counts& other);
  /// Share of the touched sectors' bytes that is used; 1 without an access.
  double sector_use() const {
    return sectors == 0 ? 1.0 : static_cast<double>(bytes) / (32.0 * static_cast<double>(sectors));
  }
  /// Active lanes of an instruction, of 32.
  double lane_use() const {
    return warps == 0 ? 1.0 : static_cast<double>(lanes) / (32.0 * static_cast<double>(warps));
  }
};

struct LineCounts {
  std::string file;
  std::uint32_t line = 0;
  Counts all;
  std::array<std::uint64_t, kOpClasses> warps_by_class = {};
};

/// Counters of a launch.
struct LaunchCounts {
  Counts all;
  /// Instructions of warps by class, in the order of OpClass.
  std::array<std::uint64_t, kOpClasses> warps_by_class = {};
  /// By file and line of the innermost inlined function, in that order.
  std::vector<LineCounts> lines;
};

/// Adds up what was counted by instruction.
LaunchCounts sum_counts(const Module& module, const Kernel& kernel, const std::vector<Counts>& by_instruction);

}  // namespace troupe::device::ptx
