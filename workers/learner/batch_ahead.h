#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "model/shard/network.h"
#include "workers/stream/feed.h"

namespace troupe::workers {

/// Makes micro-batches for a rank: the next one on a thread of its own, while the rank computes on the one before. At
/// most one is ahead, and one is made at a time, in an order that does not depend on how long anything takes: that in
/// which take() names them.
///
/// One thread calls take() and the destructor.
class BatchAhead {
 public:
  using Clock = Feed::Clock;
  /// Micro-batch `micro` of this rank in `step`, both from 0.
  struct Place {
    std::int64_t step = 0, micro = 0;
    bool operator==(const Place&) const = default;
  };
  struct MicroBatch {
    std::vector<Feed::Sample> samples;
    /// When the samples were there; what came after was work.
    Clock::time_point arrived;
    Batch inputs;
  };
  /// Takes samples and makes inputs of them. The deadline of the wait for samples counts from `since`.
  using Make = std::function<Result<MicroBatch>(const Place& place, Clock::time_point since)>;

  struct Options {
    /// Of the thread, as traces show it; cut to 15 bytes.
    std::string name;
    /// Of kernels on that thread (begin_rank_thread).
    int threads = 1;
    /// Called on the thread or in take(), never twice at once.
    Make make;
    /// Ends the wait of a `make` under way, and refuses further ones.
    std::function<void()> cancel;
  };
  explicit BatchAhead(Options options);
  /// Cancels, waits for what is being made, and drops it.
  ~BatchAhead();
  BatchAhead(const BatchAhead&) = delete;
  BatchAhead& operator=(const BatchAhead&) = delete;

  /// The micro-batch at `place`, after which the one at `next` begins to be made, unless one is ahead already. Blocks.
  /// What is ahead stays until it is asked for; another place is made here, once nothing else is being made.
  /// Errors and exceptions: those of `make` for `place`, but for a deadline that passed on the thread: `make` is then
  /// called again here, its deadline counting from this call.
  Result<MicroBatch> take(const Place& place, const std::optional<Place>& next);

 private:
  using Task = std::packaged_task<Result<MicroBatch>()>;
  struct Ahead {
    Place place;
    std::future<Result<MicroBatch>> made;
  };

  void run();
  void prepare(const Place& place);
  Result<MicroBatch> take_ahead(Clock::time_point since);

  const Options options_;
  // The caller's thread only.
  std::optional<Ahead> ahead_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_, as the next one. Valid: to be begun.
  Task task_;
  bool stopping_ = false;
  std::thread thread_;  // last: uses what is above
};

}  // namespace troupe::workers
