#include "model/step/step_timing.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/step/step_text.h"

namespace troupe::model {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }
std::size_t track_of(const Op& op) { return static_cast<std::size_t>(op.stream); }
bool computes(const Op& op) { return op.stream == OpStream::compute || op.stream == OpStream::optimizer; }

/// Seconds before `end` that none of these covers.
double uncovered(std::vector<TimedOp> covering, double end) {
  std::sort(covering.begin(), covering.end(), [](const TimedOp& a, const TimedOp& b) { return a.begin < b.begin; });
  double sum = 0, at = 0;
  for (const TimedOp& one : covering) {
    sum += std::max(0.0, one.begin - at);
    at = std::max(at, one.end);
  }
  return sum + std::max(0.0, end - at);
}

}  // namespace

StepTiming time_step(std::span<const Op> operations, const std::function<OpSeconds(const Op&)>& times_of,
                     StreamSharing sharing) {
  StepTiming timing;
  /// of each operation: the one whose end it waited for, -1: none
  std::vector<int> cause;
  std::array<int, kOpStreams> last;
  last.fill(-1);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Op& op = operations[i];
    const OpSeconds taken = times_of(op);
    TimedOp timed;
    int latest = -1;
    const auto follow = [&](int earlier) {
      if (earlier < 0 || timing.operations[index(earlier)].end < timed.begin) return;
      timed.begin = timing.operations[index(earlier)].end;
      latest = earlier;
    };
    follow(sharing == StreamSharing::in_turn ? static_cast<int>(i) - 1 : last[track_of(op)]);
    for (const int wait : op.waits) follow(wait);
    timed.end = timed.begin + taken.sum();
    timing.operations.push_back(timed);
    cause.push_back(latest);
    last[track_of(op)] = static_cast<int>(i);
    timing.busy[track_of(op)] += timed.end - timed.begin;
    timing.seconds = std::max(timing.seconds, timed.end);
    if (!computes(op)) continue;
    timing.products += taken.products, timing.attention += taken.attention, timing.moving += taken.moving;
  }

  std::vector<TimedOp> computed;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (computes(operations[i])) computed.push_back(timing.operations[i]);
  }
  timing.exposed_communication = uncovered(std::move(computed), timing.seconds);

  const auto end = std::find_if(timing.operations.begin(), timing.operations.end(),
                                [&](const TimedOp& op) { return op.end == timing.seconds; });
  for (int at = end == timing.operations.end() ? -1 : static_cast<int>(end - timing.operations.begin()); at >= 0;
       at = cause[index(at)])
    timing.critical_path.push_back(at);
  std::reverse(timing.critical_path.begin(), timing.critical_path.end());
  return timing;
}

std::string to_chrome_trace(const StepTiming& timing, std::span<const Op> operations, const ArenaPlan& plan) {
  std::string events;
  for (std::size_t s = 0; s < kOpStreams; ++s) {
    events +=
        fmt::format("{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":0,\"tid\":{},\"args\":{{\"name\":\"{}\"}}}},\n", s,
                    enum_name(static_cast<OpStream>(s)));
  }
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const TimedOp& op = timing.operations[i];
    events +=
        fmt::format("{{\"ph\":\"X\",\"name\":\"{}\",\"pid\":0,\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f}}},\n",
                    title(operations[i], plan), track_of(operations[i]), op.begin * 1e6, (op.end - op.begin) * 1e6);
  }
  events.resize(events.size() < 2 ? 0 : events.size() - 2);
  return fmt::format("{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{}\n]}}\n", events);
}

}  // namespace troupe::model
