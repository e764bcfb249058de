#pragma once

#include "base/namespaces.h"

namespace troupe::workers {

/// What was predicted of a run's steps on cores before it began, for the lines that show what was measured.
struct StepExpectation {
  /// of a step without any wait for data
  double seconds = 0;
  /// floating-point operations of products of a step of all ranks, and what a large product was measured to reach on
  /// all of this machine's cores, FLOP/s
  double product_flops = 0, product_rate = 0;

  /// Of that rate, 0..100, in a step that took so long.
  double product_share_percent(double measured_seconds) const {
    return measured_seconds > 0 ? 100 * product_flops / measured_seconds / product_rate : 0;
  }
};

}  // namespace troupe::workers
