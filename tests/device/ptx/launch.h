#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tests/device/ptx/counters.h"
#include "tests/device/ptx/finding.h"
#include "tests/device/ptx/global_shadow.h"
#include "tests/device/ptx/program.h"

namespace troupe::device::ptx {

struct LaunchShape {
  Dim3 grid = {1, 1, 1}, block = {1, 1, 1};
  /// Bytes of dynamic shared memory.
  std::uint32_t shared_bytes = 0;
};

struct LaunchOptions {
  /// Draws the order of blocks, warps and parted lanes; every order that PTX allows can come.
  std::uint64_t seed = 0;
  /// Blocks that run side by side.
  std::uint32_t resident_blocks = 2;
  /// Instructions of a warp in one block, after which it counts as hung.
  std::uint64_t most_steps = std::uint64_t{1} << 28;
  /// Different findings (kind and source line) that are kept.
  std::size_t most_findings = 64;
};

struct LaunchResult {
  std::vector<Finding> findings;
  /// Bytes that the launch read and wrote, by allocation.
  std::vector<Touched> touched;
  LaunchCounts counts;
};

/// Runs a kernel over its grid on this thread. `parameters` holds Kernel::parameter_bytes, each at its offset.
/// What the kernel does wrong is a finding, and the launch goes on: a bad read gives zeros, a bad write is dropped, a
/// block that hangs or traps ends. Needs a processor with AVX2 and FMA (x86-64).
/// Errors: invalid_argument for a shape no device takes or another number of parameter bytes; failed_precondition for
/// another processor.
Result<LaunchResult> launch(const Program& program, const Kernel& kernel, const LaunchShape& shape,
                            std::span<const std::byte> parameters, const LaunchOptions& options = {});

/// The bytes of parameters that cudaLaunchKernel takes as pointers, one a parameter.
std::vector<std::byte> pack_parameters(const Kernel& kernel, const void* const* pointers);

}  // namespace troupe::device::ptx
