#pragma once

#include <map>
#include <memory>
#include <vector>

#include "tests/device/ptx/counters.h"
#include "tests/device/ptx/global_shadow.h"
#include "tests/device/ptx/launch.h"
#include "tests/device/ptx/shared_shadow.h"
#include "tests/device/ptx/warp_state.h"

namespace troupe::device::ptx {

/// What all blocks of a launch share.
struct LaunchState {
  const Program* program = nullptr;
  const Kernel* kernel = nullptr;
  DeviceMemory* memory = nullptr;
  LaunchShape shape;
  LaunchOptions options;
  std::span<const std::byte> parameters;
  GlobalShadow shadow{0};
  /// By instruction.
  std::vector<Counts> counts;
  std::vector<Finding> findings;
  /// Place in `findings` by kind, instruction's file and line.
  std::map<std::tuple<FindingKind, std::uint32_t, std::uint32_t>, std::size_t> known_findings;
};

/// What the warps of a block share.
struct BlockState {
  LaunchState* launch = nullptr;
  Dim3 index = {};
  /// From 0.
  std::uint32_t number = 0;
  std::uint32_t shared_bytes = 0;
  std::vector<std::byte> shared;
  SharedShadow shadow;
};

}  // namespace troupe::device::ptx
