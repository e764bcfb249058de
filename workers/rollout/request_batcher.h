#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <vector>

namespace troupe::workers {

/// Which blocks are answered by one policy call. A batch leaves when `batch_blocks` of them wait
/// (rollout.batch_blocks), when the oldest has waited `max_wait` (rollout.max_wait_ms), or when no block is being
/// simulated that could join it. Blocks leave in the order in which they came. The clock is the caller's. Not
/// thread-safe.
class RequestBatcher {
 public:
  using Time = std::chrono::steady_clock::time_point;

  RequestBatcher(std::int64_t batch_blocks, std::chrono::nanoseconds max_wait)
      : batch_blocks_(static_cast<std::size_t>(std::max<std::int64_t>(1, batch_blocks))), max_wait_(max_wait) {}

  /// `block` waits since `now`; it must not wait already.
  void add(std::int64_t block, Time now) { waiting_.push_back({block, now}); }
  /// The block is answered by nobody any more; nothing happens when it does not wait.
  void remove(std::int64_t block) {
    std::erase_if(waiting_, [&](const Request& request) { return request.block == block; });
  }
  bool empty() const { return waiting_.empty(); }
  /// When the oldest request must be answered; the end of time without one.
  Time due() const { return waiting_.empty() ? Time::max() : waiting_.front().since + max_wait_; }
  /// The next batch, at most batch_blocks, into `blocks`; empty: nothing is due. `more_may_come`: other blocks are
  /// being simulated.
  void take(Time now, bool more_may_come, std::vector<std::int64_t>& blocks) {
    blocks.clear();
    if (waiting_.size() < batch_blocks_ && more_may_come && now < due()) return;
    while (!waiting_.empty() && blocks.size() < batch_blocks_) {
      blocks.push_back(waiting_.front().block);
      waiting_.pop_front();
    }
  }

 private:
  struct Request {
    std::int64_t block;
    Time since;
  };
  const std::size_t batch_blocks_;
  const std::chrono::nanoseconds max_wait_;
  std::deque<Request> waiting_;
};

}  // namespace troupe::workers
