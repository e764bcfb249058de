#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"

namespace troupe::data {

/// A thread for calls that a file system may never answer (a dead NFS server holds open, fstat and pread without end).
/// The caller waits until a deadline; a thread that has not come back by then is abandoned with what it works on, and
/// the next call gets a new one. Internal to ClipDecoder; one caller.
class ReadThread {
 public:
  using Clock = std::chrono::steady_clock;

  /// Starts no thread: the first start() does.
  ReadThread();
  /// Joins the thread when it is idle, else abandons it.
  ~ReadThread();
  ReadThread(const ReadThread&) = delete;
  ReadThread& operator=(const ReadThread&) = delete;

  /// One piece of work; done or not.
  class Job;
  /// Queues `work`, which must own whatever it touches: it may run long after the caller has given up.
  /// Errors: unavailable when too many abandoned threads of this process have not come back.
  Result<std::shared_ptr<Job>> start(std::function<void()> work);
  /// True when the job is done; false when the deadline came first, and then the thread and all its jobs are abandoned.
  bool wait(const std::shared_ptr<Job>& job, Clock::time_point deadline);

  /// start and wait for a function that returns Result<T>. Errors: that function's; deadline_exceeded, whose text is
  /// `path`: the deadline passed while `doing`.
  template <class T>
  Result<T> call(std::function<Result<T>()> work, Clock::time_point deadline, const std::string& path,
                 const char* doing) {
    auto result = std::make_shared<std::optional<Result<T>>>();
    TROUPE_ASSIGN(const auto job, start([result, work = std::move(work)] { result->emplace(work()); }));
    if (!wait(job, deadline)) return out_of_time(path, doing);
    return std::move(**result);
  }

  /// The error deadline_exceeded of a call on `path` that was not done when its deadline came.
  static Error out_of_time(const std::string& path, const char* doing);
  /// Abandoned threads of this process that have not come back.
  static int stuck();

 private:
  struct State;
  // null: no thread runs.
  std::shared_ptr<State> state_;
};

}  // namespace troupe::data
