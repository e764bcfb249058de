#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "app/terminal.h"
#include "base/progress.h"

namespace troupe::app {

/// How far a command is, on stderr: on a terminal one line that is repainted at most ten times a second and is gone
/// when the command ends, with lines of the log above it; elsewhere, and with TERM=dumb, a line every ten seconds. A
/// command of less than that says nothing there. Any thread; one object at a time.
class CommandProgress {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// `verb`: of the command, "stats". `fd` and `now` are others in tests.
  explicit CommandProgress(
      std::string verb, int fd = STDERR_FILENO,
      std::function<TimePoint()> now = [] { return std::chrono::steady_clock::now(); });
  ~CommandProgress();
  CommandProgress(const CommandProgress&) = delete;
  CommandProgress& operator=(const CommandProgress&) = delete;

  /// `unit`: "episodes"; another unit than before, another `of`, or a count far below the last one begins a new part of
  /// the work, with a rate of its own. `of` 0: not known.
  void show(const std::string& unit, std::int64_t done, std::int64_t of);
  /// show(), and show() for one unit; valid while this object lives.
  ProgressOfParts of_parts();
  Progress of_units(std::string unit);
  /// A line that stays, above the one that is repainted.
  void print(const std::string& line);

 private:
  const std::string verb_;
  const int fd_;
  const std::function<TimePoint()> now_;
  std::mutex mutex_;
  Terminal terminal_;  // guarded by mutex_, as all below
  std::string unit_;
  /// Of the part that is under way: where it began, and how far it is.
  std::int64_t first_ = 0, done_ = 0, of_ = 0;
  TimePoint begin_, shown_;
};

}  // namespace troupe::app
