#include "workers/report/compare/compare_page.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/page/html.h"
#include "base/page/svg_curves.h"
#include "workers/report/chart_kinds.h"
#include "workers/report/compare/comparison_tables.h"
#include "workers/report/compare/group_curve.h"

namespace troupe::workers {

namespace {

std::string html_of(const TextTable& table) {
  std::vector<HtmlColumn> columns;
  for (const std::string& name : table.head) columns.push_back({.name = name, .is_number = !columns.empty()});
  auto rows = table.rows;
  for (auto& row : rows) {
    for (std::string& cell : row) cell = escape_html(cell);
  }
  return html_table(columns, rows);
}

std::string part(const std::string& title, const std::string& note, const std::string& body) {
  return body.empty() ? "" : fmt::format("<h2>{}</h2>\n<p class=\"note\">{}</p>\n{}", title, note, body);
}

/// Empty where no group has the metric.
std::string chart_of(const std::vector<RunGroup>& groups, const std::string& metric, const std::string& title,
                     bool over_env_steps) {
  SvgCurves chart{.title = title, .x_title = over_env_steps ? "environment steps" : "optimizer step"};
  bool is_there = false;
  for (const RunGroup& group : groups) {  // a group without the metric has an empty curve: colours stay the groups'
    GroupCurve curve = group_curve(group, metric, over_env_steps);
    is_there |= !curve.x.empty();
    chart.series.push_back({.name = group.label,
                            .x = std::move(curve.x),
                            .y = std::move(curve.middle),
                            .low = std::move(curve.low),
                            .high = std::move(curve.high)});
  }
  return is_there ? svg_curves(chart) : "";
}

bool counts_env_steps(const std::vector<RunGroup>& groups) {
  for (const RunGroup& group : groups) {
    for (const ComparedRun& run : group.runs) {
      if (!run.metrics.curves.contains(kEnvSteps)) return false;
    }
  }
  return true;
}

std::string charts(const std::vector<RunGroup>& groups) {
  const bool has_env_steps = counts_env_steps(groups);
  std::set<std::string> shown{kEnvSteps}, all;
  std::string out;
  for (const ChartKind& kind : chart_kinds()) {
    for (const auto& [metric, name] : kind.metrics) {
      shown.insert(metric);
      out += chart_of(groups, metric, fmt::format("{}: {}", kind.title, name), kind.over_env_steps && has_env_steps);
    }
  }
  if (!out.empty()) out = "<div class=\"charts\">\n" + out + "</div>\n";
  for (const RunGroup& group : groups) {
    for (const ComparedRun& run : group.runs) {
      for (const auto& [metric, values] : run.metrics.curves) all.insert(metric);
    }
  }
  std::string others;
  for (const std::string& metric : all) {
    if (!shown.contains(metric)) others += chart_of(groups, metric, metric, false);
  }
  if (others.empty()) return out;
  return out + "<details><summary>more metrics</summary>\n<div class=\"charts\">\n" + others + "</div></details>\n";
}

std::string damage_note(const std::vector<RunGroup>& groups) {
  std::string out;
  for (const RunGroup& group : groups) {
    for (const ComparedRun& run : group.runs) {
      if (run.metrics.damaged_lines == 0) continue;
      out += fmt::format("<p class=\"warning\">{}: {} lines of metrics.jsonl hold no record.</p>\n",
                         escape_html(run.directory.root()), run.metrics.damaged_lines);
    }
  }
  return out;
}

}  // namespace

std::string compare_page(const std::string& title, const std::vector<RunGroup>& groups) {
  const std::string body =
      fmt::format("<h1>{}</h1>\n", escape_html(title)) + damage_note(groups) +
      part("Results", "Interquartile mean of a group's seeds, in brackets its 95 % bootstrap interval.",
           html_of(group_table(groups))) +
      part("Paired tests", fmt::format("Each group minus {}, seed by seed.", escape_html(groups.front().label)),
           html_of(paired_table(groups))) +
      part("Curves", "Interquartile mean of a group's seeds; the band is its 95 % bootstrap interval.",
           charts(groups)) +
      part("Settings that differ", "All others are equal.", html_of(difference_table(groups))) +
      part("Runs", "One row a seed.", html_of(run_table(groups)));
  return html_page(title, body);
}

}  // namespace troupe::workers
