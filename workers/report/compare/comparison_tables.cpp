#include "workers/report/compare/comparison_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "workers/report/compare/measure.h"
#include "workers/report/compare/seed_statistics.h"
#include "workers/report/paired_test.h"
#include "workers/report/text_layout.h"

namespace troupe::workers {

namespace {

std::vector<const ComparedRun*> all_runs(const std::vector<RunGroup>& groups) {
  std::vector<const ComparedRun*> runs;
  for (const RunGroup& group : groups) {
    for (const ComparedRun& run : group.runs) runs.push_back(&run);
  }
  return runs;
}

std::string interval_text(const Interval& interval) {
  return std::isfinite(interval.low) ? fmt::format("{} to {}", number_text(interval.low), number_text(interval.high))
                                     : "-";
}

std::string summary_text(const std::vector<double>& values, std::size_t runs) {
  if (values.empty()) return "-";
  std::string text = number_text(interquartile_mean(values));
  const Interval interval = bootstrap_interval(values);
  if (values.size() > 1 && interval.low < interval.high) text += fmt::format(" [{}]", interval_text(interval));
  return values.size() == runs ? text : fmt::format("{} ({})", text, values.size());
}

/// Pairs of numbers with the same key, the second group minus the first.
std::vector<double> paired_differences(const std::map<std::int64_t, double>& first,
                                       const std::map<std::int64_t, double>& second) {
  std::vector<double> differences;
  for (const auto& [key, value] : second) {
    if (const auto at = first.find(key); at != first.end()) differences.push_back(value - at->second);
  }
  return differences;
}

std::vector<std::string> signed_rank_row(const std::string& label, const std::string& measure, const std::string& pairs,
                                         const std::vector<double>& differences) {
  const SignedRankTest test = signed_rank_test(differences);
  const MeanInterval mean = mean_interval(differences);
  return {label,
          measure,
          fmt::format("{} {}", differences.size(), pairs),
          fmt::format("{}{}", mean.mean > 0 ? "+" : "", number_text(mean.mean)),
          interval_text(mean.interval),
          fmt::format("{:.3g}", test.p),
          "Wilcoxon"};
}

/// Runs that played the same seeds of one environment.
void add_episode_rows(const RunGroup& first, const RunGroup& second, TextTable& table) {
  const auto &a = first.runs.front().episodes, &b = second.runs.front().episodes;
  if (first.runs.size() > 1 || second.runs.size() > 1 || !a || !b || a->env != b->env) return;
  const auto differences = paired_differences(a->returns, b->returns);
  if (differences.size() < 2) return;
  table.rows.push_back(signed_rank_row(second.label, "return of an episode", "episodes", differences));
  PairedSuccesses counts;
  for (const auto& [seed, succeeded] : b->successes) {
    const auto at = a->successes.find(seed);
    if (at == a->successes.end()) continue;
    ++(succeeded ? (at->second ? counts.both : counts.only_first) : (at->second ? counts.only_second : counts.neither));
  }
  if (counts.pairs() < 2) return;
  const auto pairs = static_cast<double>(counts.pairs());
  const double difference = static_cast<double>(counts.first() - counts.second()) / pairs;
  table.rows.push_back({second.label, "success of an episode", fmt::format("{} episodes", counts.pairs()),
                        fmt::format("{}{}", difference > 0 ? "+" : "", number_text(difference)),
                        interval_text(paired_difference_interval(counts)),
                        fmt::format("{:.3g}", mcnemar_exact(counts.only_first, counts.only_second)), "McNemar"});
}

/// Runs that were held against the same windows of recordings. An episode is a pair: its windows resemble each other.
void add_recording_rows(const RunGroup& first, const RunGroup& second, TextTable& table) {
  const auto &a = first.runs.front().held_against, &b = second.runs.front().held_against;
  if (first.runs.size() > 1 || second.runs.size() > 1 || !a || !b || a->windows != b->windows) return;
  const auto differences = paired_differences(a->mse, b->mse);
  if (differences.size() < 2) return;
  table.rows.push_back(signed_rank_row(second.label, "open-loop mse of an episode", "episodes", differences));
}

/// Seed -> value of a measure, of the runs [begin, begin + group.runs.size()).
std::map<std::int64_t, double> by_seed(const RunGroup& group, const Measure& measure, std::size_t begin) {
  std::map<std::int64_t, double> values;
  for (std::size_t i = 0; i < group.runs.size(); ++i) {
    const auto& value = measure.values[begin + i];
    if (value && std::isfinite(*value)) values[group.runs[i].job.job.seed] = *value;
  }
  return values;
}

}  // namespace

std::string markdown_table(const TextTable& table) {
  if (table.rows.empty()) return {};
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < table.head.size(); ++i) {
    std::size_t width = std::max<std::size_t>(3, table.head[i].size());
    for (const auto& row : table.rows) width = std::max(width, row[i].size());
    widths.push_back(width);
  }
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string out = "|";
    for (std::size_t i = 0; i < cells.size(); ++i)
      out += i == 0 ? fmt::format(" {:<{}} |", cells[i], widths[i]) : fmt::format(" {:>{}} |", cells[i], widths[i]);
    return out + "\n";
  };
  std::string out = line(table.head) + "|";
  for (std::size_t i = 0; i < widths.size(); ++i)
    out += " " + std::string(widths[i] - (i > 0), '-') + (i == 0 ? " |" : ": |");
  out += "\n";
  for (const auto& row : table.rows) out += line(row);
  return out;
}

TextTable group_table(const std::vector<RunGroup>& groups) {
  const auto measures = measures_of(all_runs(groups));
  TextTable table{.head = {"group", "runs"}};
  for (const Measure& measure : measures) table.head.push_back(measure.name);
  std::size_t begin = 0;
  for (const RunGroup& group : groups) {
    std::vector<std::string> row{group.label, std::to_string(group.runs.size())};
    for (const Measure& measure : measures) {
      std::vector<double> values;
      for (std::size_t i = begin; i < begin + group.runs.size(); ++i) {
        if (measure.values[i] && std::isfinite(*measure.values[i])) values.push_back(*measure.values[i]);
      }
      row.push_back(summary_text(values, group.runs.size()));
    }
    table.rows.push_back(std::move(row));
    begin += group.runs.size();
  }
  return table;
}

TextTable run_table(const std::vector<RunGroup>& groups) {
  const auto runs = all_runs(groups);
  const auto measures = measures_of(runs);
  TextTable table{.head = {"run", "seed"}};
  for (const Measure& measure : measures) table.head.push_back(measure.name);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::vector<std::string> row{runs[i]->job.job.name + "/" + runs[i]->directory.id(),
                                 std::to_string(runs[i]->job.job.seed)};
    for (const Measure& measure : measures) row.push_back(measure.values[i] ? number_text(*measure.values[i]) : "-");
    table.rows.push_back(std::move(row));
  }
  return table;
}

TextTable paired_table(const std::vector<RunGroup>& groups) {
  TextTable table{.head = {"group", "measure", "pairs", "difference", "95% interval", "p", "test"}};
  const auto measures = measures_of(all_runs(groups));
  std::size_t begin = 0;
  for (std::size_t g = 0; g < groups.size(); begin += groups[g++].runs.size()) {
    if (g == 0) continue;
    for (const Measure& measure : measures) {
      if (measure.kind != MeasureKind::outcome) continue;
      const auto differences =
          paired_differences(by_seed(groups.front(), measure, 0), by_seed(groups[g], measure, begin));
      if (differences.size() >= 2)
        table.rows.push_back(signed_rank_row(groups[g].label, measure.name, "seeds", differences));
    }
    add_episode_rows(groups.front(), groups[g], table);
    add_recording_rows(groups.front(), groups[g], table);
  }
  return table;
}

TextTable difference_table(const std::vector<RunGroup>& groups) {
  TextTable table{.head = {"key"}};
  for (const RunGroup& group : groups) table.head.push_back(group.label);
  for (const auto& [key, unused] : groups.front().differing) {
    std::vector<std::string> row{key};
    for (const RunGroup& group : groups) row.push_back(group.differing.at(key));
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace troupe::workers
