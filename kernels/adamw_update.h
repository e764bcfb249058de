#pragma once

#include "base/namespaces.h"

namespace troupe::kernels {

/// The constants of one AdamW update in f32. model/optim/adamw.h forms them in f64 and rounds them; kernels on a device
/// read them from its memory, so that a graph that was captured once takes those of its step.
struct AdamWUpdate {
  /// 1 - lr * decay.
  float keep = 1;
  float b1 = 0;
  float one_minus_b1 = 0;
  float b2 = 0;
  float one_minus_b2 = 0;
  /// lr / (1 - b1^t).
  float step = 0;
  /// sqrt(1 - b2^t).
  float root = 1;
  float eps = 0;
};

}  // namespace troupe::kernels
