#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "base/result.h"

namespace troupe::workers {

/// Work on files (commits, state.db, events, metrics) in the order given, so that a slow disk does not keep the
/// controller from hearing its nodes. run() and collect() are called from one thread.
class Background {
 public:
  using Work = std::function<Result<void>()>;
  using Then = std::function<void(const Result<void>& result)>;
  virtual ~Background() = default;

  /// `work` uses nothing that the caller's thread changes. An exception in it is an `internal` error.
  virtual void run(Work work, Then then) = 0;
  /// Calls the `then` of all that has been done since the last call.
  virtual void collect() = 0;
  /// Pieces that are not done yet.
  virtual std::size_t waiting() const = 0;
  /// Until nothing waits. False: not within `deadline`.
  virtual bool wait_idle(std::chrono::milliseconds deadline) = 0;
};

/// A thread of its own. The destructor does what waits, and calls no `then`.
class BackgroundThread final : public Background {
 public:
  BackgroundThread();
  ~BackgroundThread() override;

  void run(Work work, Then then) override;
  void collect() override;
  std::size_t waiting() const override;
  bool wait_idle(std::chrono::milliseconds deadline) override;

 private:
  struct Piece {
    Work work;
    Then then;
    Result<void> result = {};
  };
  void serve();

  mutable std::mutex mutex_;
  std::condition_variable changed_, idle_;
  std::deque<Piece> waiting_, done_;
  bool is_working_ = false, ending_ = false;
  std::thread thread_;  // last: uses what is above
};

}  // namespace troupe::workers
