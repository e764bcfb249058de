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

/// The lower quartile: what else the machine does for a moment counts for little.
inline double lower_quartile_of(std::vector<double> values) {
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 4);
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

/// Lower quartile of the seconds of `runs` calls, after one that counts for nothing.
template <class F>
double quartile_seconds(int runs, const F& call) {
  call();
  std::vector<double> seconds;
  for (int i = 0; i < runs; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    seconds.push_back(seconds_since(begin));
  }
  return lower_quartile_of(std::move(seconds));
}

}  // namespace troupe::model
