#include "data/statistics/table_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/parallel.h"
#include "data/statistics/exact_series.h"

namespace troupe::data {

namespace {

constexpr std::int64_t kRoundRows = std::int64_t{1} << 17;

/// The series of one dimension of a column.
struct ColumnDimension {
  std::size_t column = 0, dim = 0;
  ExactSeries series;
};

/// The series of one dimension of a relative key: all steps together, and each step.
struct RelativeDimension {
  std::size_t key = 0, dim = 0;
  ExactSeries pooled;
  std::vector<ExactSeries> steps;
};

/// The state of one run of table_statistics.
class Run {
 public:
  Run(const TableSource& source, const StatisticsPlan& plan) : source_(source), plan_(plan) { make_series(); }

  Result<TableStatistics> run() {
    while (wants_pass()) {
      TROUPE_TRY(for_each_round(source_, read_columns(), plan_.threads,
                                [this](std::size_t, std::span<const EpisodeTable> tables) { return visit(tables); }));
      parallel_for(columns_.size(), plan_.threads, [this](std::size_t i) {
        if (columns_[i].series.wants_pass()) columns_[i].series.end_pass();
      });
      parallel_for(relative_.size(), plan_.threads, [this](std::size_t i) { end_pass(relative_[i]); });
      ++out_.passes;
    }
    collect();
    return std::move(out_);
  }

 private:
  void make_series() {
    std::int64_t column_bytes = 0, differences = 0, relative_bytes = 0;
    for (std::size_t i = 0; i < source_.episodes; ++i) {
      out_.rows += source_.rows(i);
      differences += std::max<std::int64_t>(0, source_.rows(i) - (plan_.horizon - 1)) * plan_.horizon;
    }
    for (const WantedColumn& c : plan_.columns)
      column_bytes += static_cast<std::int64_t>(c.width) * out_.rows * (c.narrow ? 4 : 8);
    for (const WantedRelative& r : plan_.relative)
      relative_bytes += static_cast<std::int64_t>(r.action.width()) * differences * (plan_.per_step ? 16 : 8);
    out_.columns_kept = column_bytes <= plan_.memory_bytes;
    const std::int64_t left = plan_.memory_bytes - (out_.columns_kept ? column_bytes : 0);
    out_.relative_kept = relative_bytes <= left;
    for (std::size_t c = 0; c < plan_.columns.size(); ++c) {
      for (std::size_t d = 0; d < plan_.columns[c].width; ++d) {
        columns_.push_back({c, d, ExactSeries(plan_.columns[c].narrow, out_.columns_kept)});
        columns_.back().series.reserve(out_.rows);
      }
    }
    const std::size_t steps = plan_.per_step ? static_cast<std::size_t>(plan_.horizon) : 0;
    for (std::size_t k = 0; k < plan_.relative.size(); ++k) {
      for (std::size_t d = 0; d < plan_.relative[k].action.width(); ++d) {
        const ExactSeries empty(false, out_.relative_kept);
        relative_.push_back({k, d, empty, std::vector<ExactSeries>(steps, empty)});
        relative_.back().pooled.reserve(differences);
        for (ExactSeries& step : relative_.back().steps) step.reserve(differences / plan_.horizon);
      }
    }
  }

  bool wants_pass() const {
    return std::any_of(columns_.begin(), columns_.end(), [](const auto& c) { return c.series.wants_pass(); }) ||
           std::any_of(relative_.begin(), relative_.end(), wants_relative);
  }
  static bool wants_relative(const RelativeDimension& r) {
    return r.pooled.wants_pass() ||
           std::any_of(r.steps.begin(), r.steps.end(), [](const ExactSeries& s) { return s.wants_pass(); });
  }

  /// Columns that the pass at hand needs.
  TableColumns read_columns() const {
    std::vector<std::string> names;
    for (const ColumnDimension& c : columns_) {
      if (c.series.wants_pass()) names.push_back(plan_.columns[c.column].name);
    }
    for (const RelativeDimension& r : relative_) {
      if (!wants_relative(r)) continue;
      names.push_back(plan_.relative[r.key].action.column);
      names.push_back(plan_.relative[r.key].state.column);
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return {.vectors = std::move(names), .integers = {}, .optional_vectors = {}, .optional_integers = {}};
  }

  Result<void> check_widths(std::span<const EpisodeTable> tables) const {
    const auto check = [&](const std::string& name, std::size_t least, bool exact) -> Result<void> {
      for (const EpisodeTable& table : tables) {
        const auto it = table.vectors.find(name);
        if (it == table.vectors.end() || table.rows == 0) continue;
        if (exact ? it->second.width == least : it->second.width >= least) continue;
        return invalid_argument(
            fmt::format("column '{}' has {} values a row; info.json says {}", name, it->second.width, least));
      }
      return {};
    };
    for (const WantedColumn& c : plan_.columns) TROUPE_TRY(check(c.name, c.width, true));
    for (const WantedRelative& r : plan_.relative) {
      TROUPE_TRY(check(r.action.column, static_cast<std::size_t>(r.action.end), false));
      TROUPE_TRY(check(r.state.column, static_cast<std::size_t>(r.state.end), false));
    }
    return {};
  }

  Result<void> visit(std::span<const EpisodeTable> tables) {
    TROUPE_TRY(check_widths(tables));
    parallel_for(columns_.size() + relative_.size(), plan_.threads, [&](std::size_t i) {
      if (i < columns_.size()) {
        visit_column(columns_[i], tables);
      } else {
        visit_relative(relative_[i - columns_.size()], tables);
      }
    });
    return {};
  }

  void visit_column(ColumnDimension& c, std::span<const EpisodeTable> tables) const {
    if (!c.series.wants_pass()) return;
    std::vector<double> values;
    for (const EpisodeTable& table : tables) {
      const VectorColumn& column = table.vectors.at(plan_.columns[c.column].name);
      values.clear();
      for (std::size_t i = c.dim; i < column.values.size(); i += column.width) values.push_back(column.values[i]);
      c.series.add(values);
    }
  }

  void visit_relative(RelativeDimension& r, std::span<const EpisodeTable> tables) const {
    if (!wants_relative(r)) return;
    const WantedRelative& key = plan_.relative[r.key];
    std::vector<double> values;
    for (const EpisodeTable& table : tables) {
      const VectorColumn& action = table.vectors.at(key.action.column);
      const VectorColumn& state = table.vectors.at(key.state.column);
      const std::size_t a = static_cast<std::size_t>(key.action.start) + r.dim;
      const std::size_t s = static_cast<std::size_t>(key.state.start) + r.dim;
      for (std::int64_t j = 0; j < plan_.horizon; ++j) {
        values.clear();
        for (std::int64_t t = 0; t < table.rows - (plan_.horizon - 1); ++t) {
          values.push_back(action.values[static_cast<std::size_t>(t + j) * action.width + a] -
                           state.values[static_cast<std::size_t>(t) * state.width + s]);
        }
        if (r.pooled.wants_pass()) r.pooled.add(values);
        if (plan_.per_step && r.steps[static_cast<std::size_t>(j)].wants_pass())
          r.steps[static_cast<std::size_t>(j)].add(values);
      }
    }
  }

  static void end_pass(RelativeDimension& r) {
    if (r.pooled.wants_pass()) r.pooled.end_pass();
    for (ExactSeries& s : r.steps) {
      if (s.wants_pass()) s.end_pass();
    }
  }

  void collect() {
    out_.columns.resize(plan_.columns.size());
    out_.relative.resize(plan_.relative.size());
    for (const ColumnDimension& c : columns_) {
      if (c.series.summary().count > 0) out_.columns[c.column].append(c.series.summary());
    }
    for (const RelativeDimension& r : relative_) {
      if (r.pooled.summary().count == 0) continue;
      RelativeStatistics& out = out_.relative[r.key];
      out.pooled.append(r.pooled.summary());
      out.steps.resize(r.steps.size());
      for (std::size_t j = 0; j < r.steps.size(); ++j) out.steps[j].append(r.steps[j].summary());
    }
  }

  const TableSource& source_;
  const StatisticsPlan& plan_;
  TableStatistics out_;
  std::vector<ColumnDimension> columns_;
  std::vector<RelativeDimension> relative_;
};

}  // namespace

Result<void> for_each_round(const TableSource& source, const TableColumns& columns, std::int64_t threads,
                            const TableRound& visit) {
  for (std::size_t first = 0; first < source.episodes;) {
    std::size_t end = first;
    for (std::int64_t rows = 0; end < source.episodes && (end == first || rows + source.rows(end) <= kRoundRows); ++end)
      rows += source.rows(end);
    std::vector<std::optional<Result<EpisodeTable>>> read(end - first);
    parallel_for(read.size(), threads, [&](std::size_t i) { read[i].emplace(source.read(first + i, columns)); });
    std::vector<EpisodeTable> tables;
    tables.reserve(read.size());
    for (auto& table : read) {
      if (!*table) return table->error();
      tables.push_back(std::move(**table));
    }
    TROUPE_TRY(visit(first, tables));
    first = end;
    if (source.progress) source.progress(static_cast<std::int64_t>(end), static_cast<std::int64_t>(source.episodes));
  }
  return {};
}

Result<TableStatistics> table_statistics(const TableSource& source, const StatisticsPlan& plan) {
  return Run(source, plan).run();
}

}  // namespace troupe::data
