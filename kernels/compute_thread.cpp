#include "kernels/compute_thread.h"

#include <ATen/Parallel.h>

#include "kernels/threads.h"

namespace troupe::kernels {

void begin_compute_thread(int threads) {
  at::set_num_threads(1);
  set_num_threads(threads);
}

}  // namespace troupe::kernels
