#include "app/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/durable_file.h"
#include "workers/report/profile.h"

namespace troupe::app {

namespace {

constexpr std::size_t kWaits = 10;

bool read_number(std::string_view text, std::int64_t& out) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), out);
  return code == std::errc() && end == text.data() + text.size();
}

}  // namespace

Result<TracedSteps> parse_traced_steps(const std::string& text, std::int64_t done, std::int64_t steps) {
  const std::string_view all = text;
  const auto colon = all.find(':');
  TracedSteps traced;
  if (!read_number(all.substr(0, colon), traced.first) ||
      !read_number(colon == all.npos ? all : all.substr(colon + 1), traced.last) || traced.first < 1 ||
      traced.last < traced.first) {
    return invalid_argument(fmt::format(
        "--profile is '{}'; it names the first and the last step to trace, counted from 1, such as 10:13", text));
  }
  if (traced.first > steps)
    return invalid_argument(
        fmt::format("--profile begins with step {}; the job has {} (training.steps)", traced.first, steps));
  if (traced.first <= done)
    return invalid_argument(
        fmt::format("--profile begins with step {}; the run goes on with step {}", traced.first, done + 1));
  traced.last = std::min(traced.last, steps);
  return traced;
}

Profile::Profile(std::string folder, TracedSteps steps, RunOutput& output)
    : folder_(std::move(folder)), steps_(steps), output_(output) {}

Result<void> Profile::write(std::int64_t step, double, std::int64_t, const std::map<std::string, double>&) {
  step_ = step;
  // one step later, so that what the traced ones left under way has ended
  if (step > steps_.last) finish();
  return {};
}

void Profile::finish() {
  if (finished_) return;
  finished_ = true;
  auto text = write_trace();
  if (const auto ended = end_tracing(folder_); text && !ended) text = ended.error();
  output_.line(text ? Severity::info : Severity::warn, text ? *text : "no trace: " + text.error().message());
}

Result<std::string> Profile::write_trace() const {
  TROUPE_ASSIGN(const auto processes, read_spans(folder_));
  std::size_t spans = 0;
  for (const ProcessSpans& process : processes) spans += process.spans.size();
  if (spans == 0) {
    return Error{Errc::failed_precondition,
                 fmt::format("the job ended before step {}, the first that --profile names", steps_.first)};
  }
  const std::string path = folder_ + "/trace.json";
  TROUPE_TRY(write_file_durably(path, chrome_trace(processes)));
  std::string waits = longest_waits(processes, kWaits);
  if (!waits.empty()) waits.pop_back();  // the output ends the line
  return fmt::format(
      "profile of steps {} to {}: {} spans of {} processes in {} (open it in ui.perfetto.dev)\n"
      "the longest waits:\n{}",
      steps_.first, std::clamp(step_, steps_.first, steps_.last), spans, processes.size(), path, waits);
}

}  // namespace troupe::app
