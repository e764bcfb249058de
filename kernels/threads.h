#pragma once

#include <cstdint>

#include "base/namespaces.h"

namespace troupe::kernels {

/// Threads that kernels called from the calling thread may share their work among. Until set_num_threads was called
/// there: LibTorch's number (at::get_num_threads()). 1 inside a part of run_parts and inside a parallel region of
/// others. Results never depend on it: work is cut by shape alone.
int num_threads() noexcept;
/// For the calling thread; 0: LibTorch's number again.
void set_num_threads(int threads) noexcept;

/// Whether threads stand by for the calling thread's run_parts (with_team, with_own_team).
bool has_team() noexcept;

/// Threads for work on that many elements: so many that each has `grain`, a few microseconds' worth, and no more than
/// num_threads().
inline int threads_for(std::int64_t elements, std::int64_t grain = 16384) {
  const std::int64_t wanted = elements / grain;
  return wanted <= 1 ? 1 : wanted < num_threads() ? static_cast<int>(wanted) : num_threads();
}

/// The part [begin, end) number `part` of `parts` equal ones of [0, n).
struct Range {
  std::int64_t begin, end;
};
constexpr Range part_of(std::int64_t n, std::int64_t part, std::int64_t parts) {
  return {n * part / parts, n * (part + 1) / parts};
}

/// Calls body(context, part) for every part in [0, parts), each once, in any order, on at most `threads` threads of
/// which the caller is one, and returns when all have ended. Parts must not depend on each other. They see the caller's
/// floating-point modes (rounding, subnormal numbers). The first exception that a part throws is thrown again once all
/// have ended. OpenMP's threads, which LibTorch uses too; built without OpenMP (clang), the caller does everything. A
/// part that calls LibTorch has one thread for it where parts are shared; where the caller does all of them, LibTorch
/// has its own number, which is 1 where bits matter (at::set_num_threads, as a learner's rank does).
void run_parts(std::int64_t parts, int threads, void (*body)(const void* context, std::int64_t part),
               const void* context);

/// Calls body(context) once on this thread while `threads` - 1 others stand by for its run_parts (kernels/team.h), so
/// that a short piece of work need not wait until they have woken. For work of many pieces, milliseconds long: to
/// gather the threads costs what one run_parts costs otherwise. Inside, LibTorch has one thread wherever it is called.
/// Throws what body throws. On one thread, and where the caller is in a part or a team already, it is a plain call.
void with_team(int threads, void (*body)(const void* context), const void* context);

/// with_team with body().
template <class F>
void with_team(int threads, const F& body) {
  with_team(
      threads, [](const void* f) { (*static_cast<const F*>(f))(); }, &body);
}

/// The same on threads of this thread's own, which stay until it ends: a body that lasts less than a millisecond can be
/// called often, and between two calls the others sleep, where OpenMP's would spin. Parts must not call LibTorch, which
/// would start threads of its own there.
void with_own_team(int threads, void (*body)(const void* context), const void* context);

template <class F>
void with_own_team(int threads, const F& body) {
  with_own_team(
      threads, [](const void* f) { (*static_cast<const F*>(f))(); }, &body);
}

/// run_parts with body(part).
template <class F>
void each_part(std::int64_t parts, int threads, const F& body) {
  run_parts(
      parts, threads, [](const void* f, std::int64_t part) { (*static_cast<const F*>(f))(part); }, &body);
}

/// Ranges of `parallel` for each thread: a thread that is held up leaves some to the others.
inline constexpr std::int64_t kRangesPerThread = 4;

/// body(begin, end) over [0, n) in contiguous ranges: all of it on one thread, else kRangesPerThread for each.
template <class F>
void parallel(std::int64_t n, int threads, const F& body) {
  const std::int64_t wanted = threads <= 1 ? 1 : threads * kRangesPerThread;
  const std::int64_t parts = wanted < n ? wanted : n;
  if (n <= 0) return;
  each_part(parts, threads, [&](std::int64_t part) {
    const Range range = part_of(n, part, parts);
    body(range.begin, range.end);
  });
}

/// body(begin, end) over [0, n) in contiguous ranges, as parallel does, that begin at multiples of `block`.
template <class F>
void parallel_blocks(std::int64_t n, std::int64_t block, int threads, const F& body) {
  parallel((n + block - 1) / block, threads,
           [&](std::int64_t begin, std::int64_t end) { body(begin * block, end * block < n ? end * block : n); });
}

}  // namespace troupe::kernels
