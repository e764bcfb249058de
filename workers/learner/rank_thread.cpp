#include "workers/learner/rank_thread.h"

#include <ATen/Context.h>

#include "kernels/compute_thread.h"

namespace troupe::workers {

void begin_rank_thread(int threads) {
  kernels::begin_compute_thread(threads);
  // The moments of a parameter that gets no more gradient decay into subnormal numbers and stay there; arithmetic on
  // them is many times slower.
  at::Context::setFlushDenormal(true);
}

}  // namespace troupe::workers
