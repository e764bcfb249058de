#include "workers/data/convert/parallel.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace troupe {

Result<void> run_parallel(std::size_t threads, std::size_t count,
                          const std::function<Result<void>(std::size_t thread, std::size_t i)>& work) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::optional<std::pair<std::size_t, Error>> failure;
  const auto loop = [&](std::size_t thread) {
    while (!stop) {
      const std::size_t i = next++;
      if (i >= count) return;
      const Result<void> done = work(thread, i);
      if (done) continue;
      const std::lock_guard lock(mutex);
      if (!failure || i < failure->first) failure.emplace(i, done.error());
      stop = true;
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t t = 1; t < std::min(threads, count); ++t) others.emplace_back(loop, t);
    loop(0);
  }
  if (failure) return failure->second;
  return {};
}

}  // namespace troupe
