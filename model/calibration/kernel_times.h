#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <vector>

#include "base/stopwatch.h"
#include "model/cores/core_rates.h"

namespace troupe::model {

/// What was measured, by kernel family.
class KernelTimes {
 public:
  void add(const KernelWork& work, double seconds) {
    if (seconds > 0) times_[work.is_bf16 ? 1 : 0][static_cast<std::size_t>(work.family)].push_back({work, seconds});
  }
  const std::vector<TimedWork>& of(KernelFamily family, bool is_bf16) const {
    return times_[is_bf16 ? 1 : 0][static_cast<std::size_t>(family)];
  }

 private:
  std::array<std::array<std::vector<TimedWork>, kKernelFamilies>, 2> times_;
};

/// Seconds of the best of `runs` calls, after one that counts for nothing: what else the machine does makes any of them
/// longer, none shorter.
template <class F>
double best_seconds(int runs, const F& call) {
  call();
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < runs; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    best = std::min(best, seconds_since(begin));
  }
  return best;
}

}  // namespace troupe::model
