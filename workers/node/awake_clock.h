#pragma once

#include <chrono>

namespace troupe::workers {

/// Time in which this process could act. A process that was stopped, or whose machine slept or waited for its disk,
/// has heard nobody meanwhile, so such a gap counts as no time: deadlines of others go on where they stood when it
/// began. Ask it at least every kGap. Not thread-safe.
class AwakeClock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  /// Two questions that are further apart have a gap between them.
  static constexpr std::chrono::seconds kGap{2};

  /// `now` without the gaps so far.
  TimePoint at(TimePoint now) {
    if (last_ != TimePoint{} && now - last_ > kGap) slept_ += now - last_;
    last_ = now;
    return now - slept_;
  }

 private:
  TimePoint last_{};
  std::chrono::steady_clock::duration slept_{};
};

}  // namespace troupe::workers
