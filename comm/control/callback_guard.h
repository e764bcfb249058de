#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <string_view>
#include <utility>

namespace troupe::comm {

/// Keeps exceptions of callbacks inside the loop's thread: counts and logs them; the third within 10 s aborts the
/// process, for a loop that keeps failing serves nobody (docs/wire.md#the-loop). run() on one thread; count() anywhere.
class CallbackGuard {
 public:
  /// `what` names the callback in the log, such as "a timer".
  template <class F>
  void run(std::string_view what, F&& callback) {
    try {
      std::forward<F>(callback)();
    } catch (const std::exception& e) {
      caught(what, e.what());
    } catch (...) {
      caught(what, "an exception that is no std::exception");
    }
  }
  /// Exceptions caught since the start.
  std::uint64_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  void caught(std::string_view what, std::string_view why);
  std::atomic<std::uint64_t> count_{0};
  std::deque<std::chrono::steady_clock::time_point> recent_;
};

}  // namespace troupe::comm
