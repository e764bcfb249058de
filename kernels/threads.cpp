#include "kernels/threads.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/team.h"

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

/// The team that the thread is the master of, and how many threads it has; null: none.
thread_local Team* own_team = nullptr;
thread_local int team_threads = 1;
/// Whether the thread is in a part that threads share.
thread_local bool is_in_part = false;

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

/// Parts of one run_parts on several threads.
struct SharedWork {
  void (*body)(const void*, std::int64_t);
  const void* context;
  unsigned modes;
  std::exception_ptr failure = {};
  std::atomic_flag has_failed = ATOMIC_FLAG_INIT;

  void run(std::int64_t part) {
    set_float_modes(modes);
    const bool was_in_part = std::exchange(is_in_part, true);
    try {
      body(context, part);
    } catch (...) {
      if (!has_failed.test_and_set()) failure = std::current_exception();
    }
    is_in_part = was_in_part;
  }
  static void run_part(const void* work, std::int64_t part) {
    static_cast<SharedWork*>(const_cast<void*>(work))->run(part);
  }
};

/// Threads that stand by for one master until it ends.
class OwnTeam {
 public:
  OwnTeam() = default;
  ~OwnTeam() { team_.dismiss(); }
  OwnTeam(const OwnTeam&) = delete;
  OwnTeam& operator=(const OwnTeam&) = delete;

  Team& of(int threads) {
    while (static_cast<int>(members_.size()) + 1 < threads) members_.emplace_back([this] { team_.serve(); });
    return team_;
  }

 private:
  Team team_;
  std::vector<std::jthread> members_;  // end before the team does
};
thread_local OwnTeam standing_team;

}  // namespace

int num_threads() noexcept {
  if (is_in_part) return 1;
  if (own_team != nullptr) return own_threads > 0 ? std::min(own_threads, team_threads) : team_threads;
#if defined(_OPENMP)
  if (omp_in_parallel() != 0) return 1;
  return own_threads > 0 ? own_threads : omp_get_max_threads();
#else
  return std::max(1, own_threads);
#endif
}

bool has_team() noexcept { return own_team != nullptr && !is_in_part; }

void set_num_threads(int threads) noexcept { own_threads = std::max(0, threads); }

void run_parts(std::int64_t parts, int threads, void (*body)(const void*, std::int64_t), const void* context) {
  const int wanted = static_cast<int>(std::min<std::int64_t>(parts, threads));
  if (wanted <= 1 || is_in_part) {
    for (std::int64_t part = 0; part < parts; ++part) body(context, part);
    return;
  }
  SharedWork work{body, context, float_modes()};
  if (own_team != nullptr) {
    own_team->run(parts, wanted - 1, &SharedWork::run_part, &work);
  } else {
#pragma omp parallel for num_threads(wanted) schedule(dynamic, 1)
    for (std::int64_t part = 0; part < parts; ++part) work.run(part);
  }
  if (work.failure) std::rethrow_exception(work.failure);
}

void with_team([[maybe_unused]] int threads, void (*body)(const void*), const void* context) {
#if defined(_OPENMP)
  if (threads > 1 && own_team == nullptr && omp_in_parallel() == 0) {
    Team team;
    std::exception_ptr failure;
#pragma omp parallel num_threads(threads)
    {
      if (omp_get_thread_num() != 0) {
        team.serve();
      } else {
        own_team = &team;
        team_threads = omp_get_num_threads();
        try {
          body(context);
        } catch (...) {
          failure = std::current_exception();
        }
        own_team = nullptr;
        team.dismiss();
      }
    }
    if (failure) std::rethrow_exception(failure);
    return;
  }
#endif
  body(context);
}

void with_own_team(int threads, void (*body)(const void*), const void* context) {
  if (threads <= 1 || own_team != nullptr || is_in_part) return body(context);
  struct Joined {
    Joined(Team& team, int threads) {
      own_team = &team;
      team_threads = threads;
    }
    ~Joined() { own_team = nullptr; }
  } const joined(standing_team.of(threads), threads);
  body(context);
}

}  // namespace troupe::kernels
