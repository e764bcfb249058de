#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/blocked_signals.h"

namespace troupe {

/// Calls work(i) once for every i < count, on `threads` threads (0: one per CPU, at most 16), the caller's among
/// them, and returns when all are done. `work` is called at the same time from several of them and throws nothing.
template <class Work>
void parallel_for(std::size_t count, std::int64_t threads, const Work& work) {
  std::atomic<std::size_t> next{0};
  const auto loop = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  if (threads <= 0) threads = std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, 16);
  threads = std::min(threads, static_cast<std::int64_t>(count));
  std::vector<std::jthread> pool;
  {
    const BlockedSignals blocked;  // in the new threads only: the caller stays the one that a signal ends
    for (std::int64_t t = 1; t < threads; ++t) pool.emplace_back(loop);
  }
  loop();
}

}  // namespace troupe
