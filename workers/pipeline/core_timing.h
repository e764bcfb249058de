#pragma once

#include <vector>

#include "model/cores/core_rates.h"
#include "model/step/step_timing.h"
#include "model/wan/unit_kernels.h"

namespace troupe::workers {

/// How a rank on cores does its step.
struct CoreStep {
  /// of each unit of the chain, for one micro-batch
  std::vector<UnitKernels> units;
  /// that the rank computes on
  int threads = 1;
  /// what moves between ranks
  KernelFamily transfer = KernelFamily::thread_transfer;
};

/// What an operation takes there: every kind of operation has its kernels. Pure.
OpSeconds seconds_on_cores(const Op& op, const ArenaPlan& plan, const CoreStep& step, const CoreRates& rates);

}  // namespace troupe::workers
