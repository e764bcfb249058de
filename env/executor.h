#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace troupe::env {

/// The stepping threads of one process: runs `rows` independent tasks of a batch over W threads and calls `done`
/// once, on the thread that finished last. Batches of several blocks may be under way at once; older ones go first.
/// A thread without work spins for about 20 us, then sleeps. Thread-safe.
class Executor {
 public:
  struct Options {
    /// 0: none; run() takes every row on its caller's thread before it returns.
    std::int64_t threads = 1;
    /// One thread per allowed CPU.
    bool pin = false;
    /// Rows taken at a time; 0: rows / (8 threads) in [1, 16], the last quarter one by one.
    std::int64_t claim = 0;
  };
  /// What the thread that calls run() does next: `helps`, it calls help() at once, and stands for one of the threads,
  /// which sleeps on. Where a batch is short, waking a thread and being woken by it costs as much as the batch.
  enum class Caller : std::uint8_t { leaves, helps };

  /// Starts the threads; signals never go to them.
  static std::unique_ptr<Executor> make(Options options);
  /// Waits for batches under way, so a row that never returns is never left behind: a caller with foreign environments
  /// bounds that wait by ending the process. Not to be called by a stepping thread.
  virtual ~Executor() = default;

  /// As asked for at make().
  virtual std::int64_t threads() const = 0;
  /// Seconds that the stepping threads have slept, summed over them.
  virtual double idle_seconds() const = 0;
  /// Thread-safe; returns at once. `row(i)` is called once for each i in [0, rows), from any thread; what the caller
  /// wrote before run() it sees, and `done` sees what every row wrote. `row` and `done` must not throw. `done` may call
  /// run().
  virtual void run(std::int64_t rows, std::function<void(std::int64_t)> row, std::function<void()> done,
                   Caller caller = Caller::leaves) = 0;
  /// Takes rows of batches under way, oldest first, until `is_done`; without any to take it spins as a stepping thread
  /// does, then returns: the last rows may still be in the hands of others. Thread-safe; `is_done` must not throw.
  virtual void help(const std::function<bool()>& is_done) = 0;
};

}  // namespace troupe::env
