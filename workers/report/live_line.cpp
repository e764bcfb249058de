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

constexpr std::size_t kDefaultWidth = 80, kBarColumns = 20, kLeastBarColumns = 5, kLeastNameColumns = 6;
/// At the right edge: the cursor, and the "^C" that a terminal shows when it is typed. A line that this wraps cannot be
/// painted over.
constexpr std::size_t kFreeColumns = 3;

std::string value_text(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : "inf";
  return fmt::format("{:.4g}", value);
}

/// A field, and what stands for it where a line is short of room: first `brief`, then `least`, which may be nothing.
struct Field {
  std::string text, brief, least;
  /// Those of a lower one leave first where even that is too long.
  int rank = 0;
};

Field fixed_field(const std::string& text, int rank) {
  return {.text = text, .brief = text, .least = text, .rank = rank};
}

std::vector<Field> fields_of(const LiveLine& line) {
  std::vector<Field> fields;
  if (line.value) fields.push_back(fixed_field(fmt::format("{} {}", line.measure, value_text(*line.value)), 5));
  if (line.success) {
    const std::string text = fmt::format("success {:.0f}%", 100 * *line.success);
    fields.push_back({.text = text, .brief = text, .least = {}, .rank = 0});
  }
  const std::string rate = rate_text(line.per_second);
  const std::string predicted =
      line.predicted_per_second ? fmt::format(" (predicted {})", rate_text(*line.predicted_per_second)) : std::string();
  fields.push_back({.text = fmt::format("{} {}/s{}", rate, line.rate_noun, predicted),
                    .brief = fmt::format("{} {}/s", rate, line.rate_noun.substr(line.rate_noun.rfind(' ') + 1)),
                    .least = rate + "/s",
                    .rank = 2});
  if (line.remaining_seconds) fields.push_back(fixed_field("ETA " + remaining_text(*line.remaining_seconds), 1));
  const std::string stall = fmt::format("stall {:.1f}%", line.stall_percent);
  fields.push_back(
      {.text = stall, .brief = stall, .least = fmt::format("stall {:.0f}%", line.stall_percent), .rank = 3});
  if (!line.bottleneck.empty()) {
    const std::string text = "bottleneck: " + line.bottleneck;
    fields.push_back({.text = text, .brief = text, .least = {}, .rank = 0});
  }
  if (line.restarts > 0) fields.push_back(fixed_field(fmt::format("restarts {}", line.restarts), 4));
  return fields;
}

struct Parts {
  std::string name;
  Field count;
  std::int64_t done = 0, of = 0;
  std::vector<Field> fields;
};

/// "count  field  field" in the form `form` of each.
std::string joined(const Parts& parts, std::string Field::*form) {
  std::string text = parts.count.*form;
  for (const Field& field : parts.fields) {
    if (!(field.*form).empty()) text += "  " + field.*form;
  }
  return text;
}

/// "[name] ", the name cut where that makes a line of `columns` fit into `room`.
std::string head_of(const std::string& name, std::size_t columns, std::size_t room) {
  const std::size_t excess = columns > room ? columns - room : 0;
  const std::size_t keep = std::max(name.size() - std::min(excess, name.size()), kLeastNameColumns);
  return keep < name.size() ? fmt::format("[{}..] ", name.substr(0, keep - 2)) : fmt::format("[{}] ", name);
}

/// "[name] BAR count  field  field" in one line of the terminal: brief forms before the bar goes, the bar before a
/// field does.
std::string fitted(Parts parts, const TextStyle& style) {
  const std::size_t columns = style.width > 0 ? static_cast<std::size_t>(style.width) : kDefaultWidth;
  const std::size_t room = columns - std::min(columns, kFreeColumns), bar = kLeastBarColumns + 1;
  std::string head = fmt::format("[{}] ", parts.name), text = joined(parts, &Field::text);
  for (const auto form : {&Field::brief, &Field::least}) {
    if (head.size() + bar + text.size() <= room) break;
    text = joined(parts, form);
    head = head_of(parts.name, parts.name.size() + 3 + bar + text.size(), room);
  }
  if (head.size() + bar + text.size() > room) head = head_of(parts.name, parts.name.size() + 3 + text.size(), room);
  while (!parts.fields.empty() && head.size() + text.size() > room) {
    parts.fields.erase(std::min_element(parts.fields.begin(), parts.fields.end(),
                                        [](const Field& a, const Field& b) { return a.rank < b.rank; }));
    text = joined(parts, &Field::least);
  }
  const double share = parts.of > 0 ? static_cast<double>(parts.done) / static_cast<double>(parts.of) : 0;
  const std::size_t used = head.size() + text.size() + 1;
  if (used + kLeastBarColumns <= room) text = bar_text(share, std::min(kBarColumns, room - used)) + " " + text;
  return (head + text).substr(0, room);
}

}  // namespace

std::string live_fields(const LiveLine& line) {
  return joined({.name = {}, .count = {}, .fields = fields_of(line)}, &Field::text).substr(2);
}

std::string bar_text(double share, std::size_t columns) {
  const double whole = static_cast<double>(columns);
  const auto done = static_cast<std::size_t>(std::clamp(std::isfinite(share) ? share : 0.0, 0.0, 1.0) * whole);
  std::string bar(done, '=');
  if (done < columns) bar += '>' + std::string(columns - done - 1, '-');
  return bar;
}

std::string live_text(const LiveLine& line, const TextStyle& style) {
  const std::string count = fmt::format("{}/{}", line.step, line.total_steps);
  return fitted({.name = line.name,
                 .count = {.text = "step " + count, .brief = count, .least = count},
                 .done = line.step,
                 .of = line.total_steps,
                 .fields = fields_of(line)},
                style);
}

std::string counted_text(const CountedWork& work, const TextStyle& style) {
  std::vector<Field> fields;
  if (work.per_second > 0) fields.push_back(fixed_field(rate_text(work.per_second) + "/s", 2));
  if (work.per_second > 0 && work.of > work.done)
    fields.push_back(
        fixed_field("ETA " + remaining_text(static_cast<double>(work.of - work.done) / work.per_second), 1));
  const std::string done = format_grouped(work.done);
  const std::string count = work.of > 0 ? fmt::format("{}/{} {}", done, format_grouped(work.of), work.unit)
                                        : fmt::format("{} {}", done, work.unit);
  return fitted({.name = work.name,
                 .count = fixed_field(count, 0),
                 .done = work.done,
                 .of = work.of,
                 .fields = std::move(fields)},
                style);
}

}  // namespace troupe::workers
