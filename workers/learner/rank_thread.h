#pragma once

#include "base/namespaces.h"

namespace troupe::workers {

/// Lets the calling thread compute what a rank's thread does, to the bit: LibTorch's own operators on one thread, on
/// which alone their sums have one order, and subnormal numbers taken for zero. Kernels share `threads`, whose number
/// changes no bit (kernels/threads.h).
void begin_rank_thread(int threads);

}  // namespace troupe::workers
