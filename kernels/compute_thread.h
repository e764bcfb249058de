#pragma once

#include "base/namespaces.h"

namespace troupe::kernels {

/// How the threads of learners, rollout workers and evaluators compute: kernels called from the calling thread share
/// `threads` (kernels/threads.h), and LibTorch's own operators have one there. Their sums have one order then, and
/// small operations do not take every core, with threads that spin for one another.
void begin_compute_thread(int threads);

}  // namespace troupe::kernels
