#include "workers/report/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

namespace troupe::workers {

namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::int64_t begin_of(const std::vector<ProcessSpans>& processes) {
  std::int64_t begin = std::numeric_limits<std::int64_t>::max();
  for (const ProcessSpans& process : processes) {
    for (const RecordedSpan& span : process.spans) begin = std::min(begin, span.begin);
  }
  return begin;
}

struct Wait {
  const ProcessSpans* process;
  const RecordedSpan* span;
};

/// Waits of one process that lie in no other wait of their thread.
void add_outermost(const ProcessSpans& process, std::vector<Wait>& out) {
  std::vector<const RecordedSpan*> waits;
  for (const RecordedSpan& span : process.spans) {
    if (span.kind == SpanKind::wait) waits.push_back(&span);
  }
  const auto order = [](const RecordedSpan* s) { return std::tuple(s->thread, s->begin, -s->end); };
  std::sort(waits.begin(), waits.end(), [&](const auto* a, const auto* b) { return order(a) < order(b); });
  std::int32_t thread = -1;
  std::int64_t until = 0;
  for (const RecordedSpan* wait : waits) {
    if (wait->thread == thread && wait->end <= until) continue;
    thread = wait->thread;
    until = wait->end;
    out.push_back({&process, wait});
  }
}

}  // namespace

std::string chrome_trace(const std::vector<ProcessSpans>& processes) {
  const std::int64_t begin = begin_of(processes);
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  const char* comma = "\n";
  for (std::size_t pid = 0; pid < processes.size(); ++pid) {
    const ProcessSpans& process = processes[pid];
    const auto label = [&](const char* what, std::int32_t thread, const std::string& name) {
      out += fmt::format("{}{{\"ph\":\"M\",\"name\":\"{}\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}}}}", comma,
                         what, pid + 1, thread, quoted(name));
      comma = ",\n";
    };
    label("process_name", 0, process.process);
    std::map<std::int32_t, std::string> threads;
    for (const RecordedSpan& span : process.spans) threads.emplace(span.thread, span.thread_name);
    for (const auto& [thread, name] : threads) label("thread_name", thread, name);
    for (const RecordedSpan& span : process.spans) {
      out += fmt::format(
          "{}{{\"ph\":\"X\",\"name\":{},\"cat\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f}}}", comma,
          quoted(span.name), span.kind == SpanKind::wait ? "wait" : "work", pid + 1, span.thread,
          1e-3 * static_cast<double>(span.begin - begin), 1e-3 * static_cast<double>(span.end - span.begin));
    }
  }
  return out + "\n]}\n";
}

std::string longest_waits(const std::vector<ProcessSpans>& processes, std::size_t most) {
  const std::int64_t begin = begin_of(processes);
  std::vector<Wait> waits;
  std::int64_t dropped = 0;
  for (const ProcessSpans& process : processes) {
    add_outermost(process, waits);
    dropped += process.dropped;
  }
  const auto seconds = [](std::int64_t nanoseconds) { return 1e-9 * static_cast<double>(nanoseconds); };
  std::stable_sort(waits.begin(), waits.end(), [](const Wait& a, const Wait& b) {
    return a.span->end - a.span->begin > b.span->end - b.span->begin;
  });
  std::string out;
  for (std::size_t i = 0; i < std::min(most, waits.size()); ++i) {
    const auto& [process, span] = waits[i];
    out += fmt::format("  {:>9.6f} s  {:<16} {:<15} at {:.3f} s  {}\n", seconds(span->end - span->begin),
                       process->process, span->thread_name, seconds(span->begin - begin), span->name);
  }
  if (dropped > 0) out += fmt::format("  {} spans found no room and are missing; trace fewer steps\n", dropped);
  return out;
}

}  // namespace troupe::workers
