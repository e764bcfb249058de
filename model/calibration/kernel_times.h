#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>
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

/// The one in the middle. Best times are seldom seen in a step: the machine's clock and its neighbours vary.
inline double median_of(std::vector<double> seconds) {
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

/// Median seconds of `runs` calls, after one that counts for nothing.
template <class F>
double median_seconds(int runs, const F& call) {
  call();
  std::vector<double> seconds;
  for (int i = 0; i < runs; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    seconds.push_back(seconds_since(begin));
  }
  return median_of(std::move(seconds));
}

}  // namespace troupe::model
