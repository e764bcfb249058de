#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/enum_names.h"
#include "comm/collective/collective.h"

namespace troupe::comm {

/// Which of Collective's functions an operation is; all ranks must agree on it for one sequence number.
enum class CollectiveOp : std::uint8_t { all_gather, all_to_all, all_reduce_sum, all_reduce_max, broadcast, barrier };
/// As Collective's functions are called.
constexpr auto enum_names(CollectiveOp) {
  return std::array{"all_gather", "all_to_all", "all_reduce_sum", "all_reduce_max", "broadcast", "barrier"};
}

/// What a rank brings to an operation: as Collective's functions. Not owned, and the operation's until it returns.
struct ThreadBuffers {
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  /// Of one rank's share: a shard, a part, or the whole of what is not shared.
  std::size_t bytes = 0;
  int root = 0;
};

/// One operation of a ThreadGroup: what each rank brought to it and how far each rank's part is. Guarded by the group's
/// mutex, but for `result`, which only its rank's part writes and its rank reads afterwards.
struct ThreadOperation {
  /// absent: the rank has not come; posted: its buffers are known; running: its output is being made; finished: it is
  /// there.
  enum class Phase : std::uint8_t { absent, posted, running, finished };
  struct Part {
    const std::byte* in = nullptr;
    std::byte* out = nullptr;
    Phase phase = Phase::absent;
    /// All-reduce: peers still read `in`, so the result waits here until all have finished.
    std::vector<double> result;
  };
  CollectiveOp kind;
  /// Counts a rank's operations from 0.
  std::uint64_t sequence = 0;
  std::size_t bytes = 0;
  int root = 0;
  /// How many parts have reached each phase; posted counts those beyond it too.
  int posted = 0, running = 0, finished = 0;
  /// By rank.
  std::vector<Part> parts;
};

/// Where the ranks of one process meet. Operation n of one rank meets operation n of every other. A rank makes its own
/// output from the peers' inputs in its wait(), which touches peers' buffers only between the last post and the last
/// finish, so a buffer is free once wait() returns. Thread-safe.
class ThreadGroup {
 public:
  using Clock = std::chrono::steady_clock;
  /// Held by the group until it is finished, and by who waits for it.
  using Op = std::shared_ptr<ThreadOperation>;

  ThreadGroup(int world, std::chrono::milliseconds timeout) : world_(world), timeout_(timeout), left_(world, false) {}

  int world() const noexcept { return world_; }
  std::chrono::milliseconds timeout() const noexcept { return timeout_; }

  /// Brings rank's buffers to operation `sequence`. Errors: aborted; internal when ranks disagree on what the operation
  /// is (then the whole group is aborted, because the order is lost).
  Result<Op> post(int rank, std::uint64_t sequence, CollectiveOp kind, const ThreadBuffers& buffers);
  /// Makes rank's output once all have posted and returns when every rank has. Errors: as Collective's.
  Result<void> wait(const Op& op, int rank, Clock::time_point deadline);

  /// The group that those of this group's ranks form who ask with these numbers, `world` of them; made by the first.
  std::shared_ptr<ThreadGroup> part(std::uint64_t sequence, int colour, int world);

  /// Every open and later operation of every rank fails with `aborted` and this reason. The first reason stays.
  void abort(const std::string& why);
  /// The rank issues nothing more. Peers that still need it fail with `aborted`. Returns when nobody reads its buffers.
  void leave(int rank);

 private:
  using Lock = std::unique_lock<std::mutex>;
  Error abort_error(const ThreadOperation& op) const;
  /// A rank that left before it came to the operation.
  std::optional<int> lost_rank(const ThreadOperation& op) const;
  bool is_ready(const ThreadOperation& op) const { return op.posted == world_; }
  bool is_dead(const ThreadOperation& op) const { return aborted_.has_value() || lost_rank(op).has_value(); }
  /// Computes the rank's output without the lock, which is held before and after.
  void run_part(Lock& lock, const Op& op, int rank);
  /// Copies or combines into the rank's output, or its `result` for all-reduce.
  void compute(ThreadOperation& op, int rank) const;
  void abort_locked(std::string why);
  /// Which ranks have not come, in words, for errors.
  std::string missing(const ThreadOperation& op) const;

  const int world_;
  const std::chrono::milliseconds timeout_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  /// By sequence number: operations that not all ranks have finished. Guarded by mutex_, as what follows.
  ///
  std::map<std::uint64_t, Op> open_;
  std::vector<bool> left_;
  std::optional<std::string> aborted_;
  std::map<std::pair<std::uint64_t, int>, std::shared_ptr<ThreadGroup>> parts_;
};

}  // namespace troupe::comm
