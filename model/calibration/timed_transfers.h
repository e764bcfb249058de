#pragma once

#include "model/calibration/kernel_times.h"

namespace troupe::model {

/// Times all-gathers between two ranks, as threads over memory and over Gloo's sockets on this machine. `bytes` of the
/// work are those that a rank sends. A backend that cannot be set up here is left out.
void time_transfers(KernelTimes& times);

}  // namespace troupe::model
