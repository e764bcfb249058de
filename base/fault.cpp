#include "base/fault.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "base/log.h"

namespace troupe::base {

namespace {

struct Armed {
  std::string point, subject, action;
  std::int64_t count = 1, skip = 0;
};

struct State {
  std::mutex mutex;
  std::string process;
  std::vector<Armed> armed;
  std::atomic<bool> any{false};
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

Result<std::vector<Armed>> parse(const std::string& spec) {
  std::vector<Armed> armed;
  if (spec.empty()) return armed;
  for (const std::string& entry : split(spec, ',')) {
    const auto fields = split(entry, ':');
    const auto bad = [&] {
      return Error{
          Errc::invalid_argument,
          fmt::format("TROUPE_FAULT: '{}' is not point[@subject]:fail|kill|crash|stall|enospc[:count[:skip]]", entry)};
    };
    if (fields.size() < 2 || fields.size() > 4) return bad();
    Armed a;
    const std::size_t at = fields[0].find('@');
    a.point = fields[0].substr(0, at);
    if (at != std::string::npos) a.subject = fields[0].substr(at + 1);
    a.action = fields[1];
    if (a.action != "fail" && a.action != "kill" && a.action != "crash" && a.action != "stall" && a.action != "enospc")
      return bad();
    char* end = nullptr;
    if (fields.size() > 2) {
      a.count = std::strtoll(fields[2].c_str(), &end, 10);
      if (fields[2].empty() || *end != 0) return bad();
    }
    if (fields.size() > 3) {
      a.skip = std::strtoll(fields[3].c_str(), &end, 10);
      if (fields[3].empty() || *end != 0) return bad();
    }
    armed.push_back(std::move(a));
  }
  return armed;
}

State& state() {
  static State* instance = [] {
    auto* s = new State;  // never destroyed: fault points may run during exit
    if (const char* spec = std::getenv("TROUPE_FAULT")) {
      auto parsed = parse(spec);
      if (!parsed) {
        std::fprintf(stderr, "troupe: %s\n", parsed.error().message().c_str());
        std::_Exit(2);
      }
      s->armed = std::move(*parsed);
      s->any = !s->armed.empty();
    }
    return s;
  }();
  return *instance;
}

Result<void> trigger(const Armed& a, std::string_view point, std::string_view subject) {
  log::warn("fault point {} ({}): {}", point, subject, a.action);
  if (a.action == "kill" || a.action == "crash") {
    log::flush();
    if (a.action == "crash") std::abort();
    ::kill(::getpid(), SIGKILL);
  }
  if (a.action == "stall") {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable never;
    never.wait_for(lock, std::chrono::hours(1));
  }
  if (a.action == "enospc") {
    return Error{Errc::resource_exhausted, fmt::format("{}: No space left on device (injected at {})", subject, point)};
  }
  return Error{Errc::unavailable, fmt::format("{}: failure injected at {}", subject, point)};
}

}  // namespace

Result<void> fault_point(std::string_view point, std::string_view subject) {
  State& s = state();
  if (!s.any.load(std::memory_order_relaxed)) return {};
  Armed hit;
  {
    std::lock_guard lock(s.mutex);
    const std::string named =
        subject.starts_with(s.process) ? std::string(subject) : fmt::format("{} {}", s.process, subject);
    for (Armed& a : s.armed) {
      if (a.point != point) continue;
      if (!a.subject.empty() && named.find(a.subject) == std::string::npos) continue;
      if (a.skip > 0) {
        --a.skip;
        continue;
      }
      if (a.count <= 0) continue;
      --a.count;
      hit = a;
      break;
    }
  }
  if (hit.point.empty()) return {};
  return trigger(hit, point, subject);
}

void name_fault_process(const std::string& instance) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.process = instance;
}

Result<void> arm_faults(const std::string& spec) {
  auto parsed = parse(spec);
  if (!parsed) return parsed.error();
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.armed = std::move(*parsed);
  s.any = !s.armed.empty();
  return {};
}

}  // namespace troupe::base
