#pragma once

#include "base/namespaces.h"

namespace troupe::workers {

/// Lets the calling thread compute what a rank's thread does, to the bit: begin_compute_thread, and subnormal numbers
/// taken for zero. The number of threads changes no bit (kernels/threads.h).
void begin_rank_thread(int threads);

}  // namespace troupe::workers
