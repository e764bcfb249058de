#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_names.h"
#include "tests/device/ptx/types.h"

namespace troupe::device::ptx {

/// What a kernel did that it must not do.
enum class FindingKind : std::uint8_t {
  /// An access outside its allocation, its shared memory, its thread's local memory or its parameters.
  out_of_bounds,
  /// An address that is no multiple of the bytes of the access.
  misaligned,
  /// A read of bytes that were never written.
  uninitialised_memory,
  /// A register that this thread has not written.
  uninitialised_register,
  /// A write to constant memory, or to what the same launch reads through the read-only path.
  read_only_written,
  use_after_free,
  /// Two threads of a block, at least one of them writes, and nothing orders them.
  shared_race,
  /// Two blocks of a launch, at least one of them writes.
  global_race,
  /// A byte that cp.async may still be writing.
  async_not_waited,
  /// Threads of a warp, or warps of a block, wait at different barriers.
  divergent_barrier,
  /// A thread that a mask names does not arrive.
  missing_lane,
  /// No warp of the block can go on, or the budget of steps is spent.
  hang,
  /// `trap` or a failed assertion.
  trap,
};

constexpr auto enum_names(FindingKind) {
  return std::array{"out_of_bounds",
                    "misaligned",
                    "uninitialised_memory",
                    "uninitialised_register",
                    "read_only_written",
                    "use_after_free",
                    "shared_race",
                    "global_race",
                    "async_not_waited",
                    "divergent_barrier",
                    "missing_lane",
                    "hang",
                    "trap"};
}

using Dim3 = std::array<std::uint32_t, 3>;

/// One finding, the first of its kind at its source line.
struct Finding {
  FindingKind kind = FindingKind::trap;
  std::string kernel = {};
  /// Of the innermost inlined function; `source` also names the caller.
  std::string file = {};
  std::uint32_t line = 0;
  std::string source = {};
  Dim3 block = {};
  /// Indices within the block.
  std::vector<std::uint32_t> threads = {};
  /// Of the first of these threads; shared and local addresses are offsets. 0 without an access.
  std::uint64_t address = 0;
  /// Base and size of the global allocation, or 0.
  std::uint64_t allocation = 0, allocation_bytes = 0;
  std::string text = {};
  /// How often it happened.
  std::uint64_t times = 1;

  /// "shared_race: sum (norm.cu:31) block (0,0,0) thread 32 address 0x80: ..."
  std::string to_string() const;
};

/// All of them, a line each.
std::string to_string(std::span<const Finding> findings);

}  // namespace troupe::device::ptx
