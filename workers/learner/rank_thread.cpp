#include "workers/learner/rank_thread.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include "kernels/threads.h"

namespace troupe::workers {

void begin_rank_thread(int threads) {
  at::set_num_threads(1);
  kernels::set_num_threads(threads);
  // The moments of a parameter that gets no more gradient decay into subnormal numbers and stay there; arithmetic on
  // them is many times slower.
  at::Context::setFlushDenormal(true);
}

}  // namespace troupe::workers
