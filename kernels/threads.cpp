#include "kernels/threads.h"

#include <algorithm>
#include <atomic>
#include <exception>

#if defined(_OPENMP)
#include <omp.h>
#endif
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace troupe::kernels {
namespace {

/// 0: never set here.
thread_local int own_threads = 0;

/// Rounding mode and the treatment of subnormal numbers.
unsigned float_modes() noexcept {
#if defined(__SSE2__)
  return _mm_getcsr();
#else
  return 0;
#endif
}
void set_float_modes([[maybe_unused]] unsigned modes) noexcept {
#if defined(__SSE2__)
  if (_mm_getcsr() != modes) _mm_setcsr(modes);
#endif
}

}  // namespace

int num_threads() noexcept {
#if defined(_OPENMP)
  if (omp_in_parallel() != 0) return 1;
  return own_threads > 0 ? own_threads : omp_get_max_threads();
#else
  return std::max(1, own_threads);
#endif
}

void set_num_threads(int threads) noexcept { own_threads = std::max(0, threads); }

void run_parts(std::int64_t parts, int threads, void (*body)(const void*, std::int64_t), const void* context) {
  const int team = static_cast<int>(std::min<std::int64_t>(parts, threads));
  if (team <= 1) {
    for (std::int64_t part = 0; part < parts; ++part) body(context, part);
    return;
  }
  std::exception_ptr failure;
  std::atomic_flag has_failed = ATOMIC_FLAG_INIT;
  const unsigned modes = float_modes();
#pragma omp parallel for num_threads(team) schedule(dynamic, 1)
  for (std::int64_t part = 0; part < parts; ++part) {
    set_float_modes(modes);
    try {
      body(context, part);
    } catch (...) {
      if (!has_failed.test_and_set()) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace troupe::kernels
