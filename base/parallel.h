#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/blocked_signals.h"
#include "base/result.h"

namespace troupe::base {

/// Runs loop(thread) on `threads` threads (0: one per CPU, at most 16; never more than `count`), the caller's among
/// them, and returns when all have returned. Signals stay with the caller's thread.
/// `loop` gets thread numbers 0 to threads - 1; 0 is the caller's. It must not throw: a jthread would end the
/// process.
/// With one thread everything runs in the caller's: no thread is made.
///
template <class Loop>
void run_threads(std::size_t count, std::int64_t threads, const Loop& loop) {
  if (threads <= 0) threads = std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, 16);
  threads = std::min(threads, static_cast<std::int64_t>(count));
  std::vector<std::jthread> pool;
  {
    const BlockedSignals blocked;  // in the new threads only: the caller stays the one that a signal ends
    for (std::int64_t t = 1; t < threads; ++t) pool.emplace_back(loop, static_cast<std::size_t>(t));
  }
  loop(0);
}

/// Calls work(i) once for every i < count on threads as run_threads takes them, in ascending order of beginning. `work`
/// is called at the same time from several of them and throws nothing.
/// Threads are made and joined in every call, about 20 us each: for work of milliseconds and more.
template <class Work>
void parallel_for(std::size_t count, std::int64_t threads, const Work& work) {
  std::atomic<std::size_t> next{0};
  run_threads(count, threads, [&](std::size_t) {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  });
}

/// The same for work(thread, i) that returns Result<void>: after a failure nothing further begins; the failure of the
/// smallest i is returned.
/// Later indices than the failed one may have been done. `thread` is below the number of threads, for per-thread
/// scratch.
template <class Work>
Result<void> try_parallel_for(std::size_t count, std::int64_t threads, const Work& work) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::optional<std::pair<std::size_t, Error>> failure;
  run_threads(count, threads, [&](std::size_t thread) {
    while (!stop) {
      const std::size_t i = next++;
      if (i >= count) return;
      const Result<void> done = work(thread, i);
      if (done) continue;
      const std::lock_guard lock(mutex);
      if (!failure || i < failure->first) failure.emplace(i, done.error());
      stop = true;
    }
  });
  if (failure) return failure->second;
  return {};
}

}  // namespace troupe::base
