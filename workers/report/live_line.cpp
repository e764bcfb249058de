#include "workers/report/live_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/grouped_digits.h"
#include "workers/report/text_layout.h"

namespace troupe::workers {

namespace {

constexpr std::size_t kDefaultWidth = 80, kBarColumns = 20, kLeastBarColumns = 5;

std::string value_text(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : "inf";
  return fmt::format("{:.4g}", value);
}

std::vector<std::string> fields_of(const LiveLine& line) {
  std::vector<std::string> fields;
  if (line.value) fields.push_back(fmt::format("{} {}", line.measure, value_text(*line.value)));
  if (line.success) fields.push_back(fmt::format("success {:.0f}%", 100 * *line.success));
  fields.push_back(fmt::format("{} {}/s", rate_text(line.per_second), line.rate_noun));
  if (line.remaining_seconds) fields.push_back("ETA " + duration_text(*line.remaining_seconds));
  fields.push_back(fmt::format("stall {:.1f}%", line.stall_percent));
  if (line.restarts > 0) fields.push_back(fmt::format("restarts {}", line.restarts));
  return fields;
}

struct Parts {
  std::string name, count;
  std::int64_t done = 0, of = 0;
  std::vector<std::string> fields;
};

/// "[name] BAR count  field  field" in one line of the terminal: as many fields as fit, a bar in the room left.
std::string fitted(const Parts& parts, const TextStyle& style) {
  const std::size_t width = style.width > 0 ? static_cast<std::size_t>(style.width) - 1 : kDefaultWidth - 1;
  std::string text = parts.count;
  const std::string head = fmt::format("[{}] ", parts.name);
  for (const std::string& field : parts.fields) {
    if (head.size() + text.size() + 2 + field.size() > width) break;
    text += "  " + field;
  }
  const double share = parts.of > 0 ? static_cast<double>(parts.done) / static_cast<double>(parts.of) : 0;
  const std::size_t used = head.size() + text.size() + 1;
  if (used + kLeastBarColumns <= width) text = bar_text(share, std::min(kBarColumns, width - used)) + " " + text;
  return (head + text).substr(0, width);
}

}  // namespace

std::string live_fields(const LiveLine& line) { return fmt::format("{}", fmt::join(fields_of(line), "  ")); }

std::string bar_text(double share, std::size_t columns) {
  const double whole = static_cast<double>(columns);
  const auto done = static_cast<std::size_t>(std::clamp(std::isfinite(share) ? share : 0.0, 0.0, 1.0) * whole);
  std::string bar(done, '=');
  if (done < columns) bar += '>' + std::string(columns - done - 1, '-');
  return bar;
}

std::string live_text(const LiveLine& line, const TextStyle& style) {
  return fitted({.name = line.name,
                 .count = fmt::format("step {}/{}", line.step, line.total_steps),
                 .done = line.step,
                 .of = line.total_steps,
                 .fields = fields_of(line)},
                style);
}

std::string counted_text(const CountedWork& work, const TextStyle& style) {
  std::vector<std::string> fields;
  if (work.per_second > 0) fields.push_back(rate_text(work.per_second) + "/s");
  if (work.per_second > 0 && work.of > work.done)
    fields.push_back("ETA " + duration_text(static_cast<double>(work.of - work.done) / work.per_second));
  const std::string done = format_grouped(work.done);
  return fitted({.name = work.name,
                 .count = work.of > 0 ? fmt::format("{}/{} {}", done, format_grouped(work.of), work.unit)
                                      : fmt::format("{} {}", done, work.unit),
                 .done = work.done,
                 .of = work.of,
                 .fields = std::move(fields)},
                style);
}

}  // namespace troupe::workers
