#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/step/step_timing.h"
#include "model/wan/unit_kernels.h"

namespace troupe::workers {

/// How fast a device does each kind of work, and what it takes to begin one. Those of a device that was not measured
/// are assumptions (docs/learner-engine.md#on-devices).
struct DeviceRates {
  /// FLOP/s
  double products = 0, attention = 0;
  /// bytes/s of the device's memory, to other ranks, and to and from pinned memory of the host
  double memory = 0, link = 0, offload = 0;
  /// seconds of the host to launch a kernel, of the host to launch a CUDA graph, of the device between two kernels
  double kernel_launch = 0, graph_launch = 0, kernel_gap = 0;
  /// seconds of a collective before its bytes: of its start, and of each rank but the own
  double collective = 0, hop = 0;
  /// "memory, products": those that are no assumptions
  std::string measured;
};

/// How a rank on a device does its step.
struct DeviceStep {
  /// of each unit of the chain, for one micro-batch, with native products
  std::vector<UnitKernels> units;
  /// a unit's pass is launched as one graph, else kernel by kernel
  bool graphs = true;
};

/// What the kernels of one program take, launched as one graph or one by one (as seconds_on_device says). Pure.
OpSeconds seconds_of_program(std::span<const KernelWork> kernels, bool graphs, const DeviceRates& rates);

/// What an operation takes there. The host launches ahead of the device: of kernels that are launched one by one,
/// launches take what they exceed the kernels' own time by. Every kind of work that there is needs a rate. Pure.
OpSeconds seconds_on_device(const Op& op, const ArenaPlan& plan, const DeviceStep& step, const DeviceRates& rates);

}  // namespace troupe::workers
