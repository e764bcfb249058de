#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

namespace troupe::workers {

/// Which blocks are answered by one policy call. A batch leaves when `batch_blocks` of them wait
/// (rollout.batch_blocks), when the oldest has waited `max_wait` (rollout.max_wait_ms), or when no block is being
/// simulated that could join it. With batch_blocks 0 all that wait leave at once, in one batch. Blocks leave in the
/// order in which they came. The clock is the caller's. Not thread-safe.
class RequestBatcher {
 public:
  using Time = std::chrono::steady_clock::time_point;

  RequestBatcher(std::int64_t batch_blocks, std::chrono::nanoseconds max_wait)
      : wanted_(batch_blocks > 0 ? static_cast<std::size_t>(batch_blocks) : 1),
        most_(batch_blocks > 0 ? wanted_ : std::numeric_limits<std::size_t>::max()),
        max_wait_(max_wait) {}

  /// `block` waits since `now`; it must not wait already.
  void add(std::int64_t block, Time now) { waiting_.push_back({block, now}); }
  /// The block is answered by nobody any more; nothing happens when it does not wait.
  void remove(std::int64_t block) {
    std::erase_if(waiting_, [&](const Request& request) { return request.block == block; });
  }
  bool empty() const { return waiting_.empty(); }
  /// When the oldest request must be answered; the end of time without one.
  Time due() const { return waiting_.empty() ? Time::max() : waiting_.front().since + max_wait_; }
  /// The next batch into `blocks`; empty: nothing is due. `more_may_come`: other blocks are
  /// being simulated.
  void take(Time now, bool more_may_come, std::vector<std::int64_t>& blocks) {
    blocks.clear();
    if (waiting_.size() < wanted_ && more_may_come && now < due()) return;
    while (!waiting_.empty() && blocks.size() < most_) {
      blocks.push_back(waiting_.front().block);
      waiting_.pop_front();
    }
  }

 private:
  struct Request {
    std::int64_t block;
    Time since;
  };
  const std::size_t wanted_, most_;
  const std::chrono::nanoseconds max_wait_;
  std::deque<Request> waiting_;
};

}  // namespace troupe::workers
