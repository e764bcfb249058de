#include "app/command_progress.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "workers/report/live_line.h"

namespace troupe::app {

namespace {

constexpr std::chrono::milliseconds kRepaint{100}, kLine{10'000};
constexpr int kDrainMs = 500;

}  // namespace

CommandProgress::CommandProgress(std::string verb, int fd, std::function<TimePoint()> now)
    : verb_(std::move(verb)), fd_(fd), now_(std::move(now)), terminal_(fd, "no file"), begin_(now_()), shown_(begin_) {
  if (!terminal_.has_live_line()) return;
  shown_ -= kRepaint;  // the first state is painted at once
  log::divert_stderr([this](const std::string& text) {
    const std::lock_guard lock(mutex_);
    terminal_.print(text);
  });
}

CommandProgress::~CommandProgress() {
  if (terminal_.has_live_line()) log::divert_stderr({});
  // A terminal that does not take the line cannot show what follows either: no use in waiting for long.
  pollfd taken{terminal_.fd(), POLLOUT, 0};
  if (terminal_.is_waiting() && ::poll(&taken, 1, kDrainMs) > 0) terminal_.flush();
  terminal_.set_live("");
}

void CommandProgress::show(const std::string& unit, std::int64_t done, std::int64_t of) {
  const std::lock_guard lock(mutex_);
  const TimePoint now = now_();
  if (unit != unit_ || of != of_ || done < done_ / 2) {
    begin_ = now;
    unit_ = unit;
    first_ = done_ = done;
    of_ = of;
  }
  done_ = std::max(done_, done);  // threads count, then call: the order may change in between
  const bool repaints = terminal_.has_live_line();
  if (now - shown_ < (repaints ? kRepaint : kLine)) return;
  shown_ = now;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const double per_second = seconds > 0 ? static_cast<double>(done_ - first_) / seconds : 0;
  const CountedWork work{.name = verb_, .unit = unit, .done = done_, .of = of, .per_second = per_second};
  if (repaints) {
    terminal_.set_live(counted_text(work, text_style_of(fd_)));
  } else {
    terminal_.print(counted_text(work, {}) + "\n");
  }
}

ProgressOfParts CommandProgress::of_parts() {
  return [this](const std::string& unit, std::int64_t done, std::int64_t of) { show(unit, done, of); };
}

Progress CommandProgress::of_units(std::string unit) {
  return [this, unit = std::move(unit)](std::int64_t done, std::int64_t of) { show(unit, done, of); };
}

void CommandProgress::print(const std::string& line) {
  const std::lock_guard lock(mutex_);
  terminal_.print(line + "\n");
}

}  // namespace troupe::app
