#include "workers/report/live_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

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
  const std::size_t width = style.width > 0 ? static_cast<std::size_t>(style.width) - 1 : kDefaultWidth - 1;
  std::string text = fmt::format("step {}/{}", line.step, line.total_steps);
  std::string head = fmt::format("[{}] ", line.name);
  for (const std::string& field : fields_of(line)) {
    if (head.size() + text.size() + 2 + field.size() > width) break;
    text += "  " + field;
  }
  const double share =
      line.total_steps > 0 ? static_cast<double>(line.step) / static_cast<double>(line.total_steps) : 0;
  const std::size_t used = head.size() + text.size() + 1;
  if (used + kLeastBarColumns <= width) text = bar_text(share, std::min(kBarColumns, width - used)) + " " + text;
  return (head + text).substr(0, width);
}

}  // namespace troupe::workers
