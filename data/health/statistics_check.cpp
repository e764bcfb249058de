#include "data/health/statistics_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "data/statistics/dataset_statistics.h"

namespace troupe::data {

namespace {

/// How far a stored statistic may be from the exact one, as a share of max - min: float32 sums and rounding are well
/// below.
constexpr double kStoredTolerance = 1e-3;
/// The same of quantiles, which LeRobot estimates, and joins from episodes by an average or an envelope.
constexpr double kQuantileTolerance = 0.1;
constexpr double kNearConstant = 1e-6;

/// Reads columns that no sample uses without letting them spoil an episode: where one cannot be read there are zeros,
/// and it is remembered. Thread-safe.
class UnusedColumns {
 public:
  UnusedColumns(TableSource tables, const SampleColumns& keys, const std::vector<WantedColumn>& columns)
      : tables_(std::move(tables)), used_(keys.vector_columns()) {
    for (const WantedColumn& c : columns) widths_[c.name] = c.width;
  }

  Result<EpisodeTable> read(std::size_t place, const TableColumns& wanted) {
    TableColumns asked;
    for (const std::string& name : wanted.vectors) {
      if (is_used(name)) asked.vectors.push_back(name);
    }
    TROUPE_ASSIGN(EpisodeTable table, tables_.read(place, asked));
    for (const std::string& name : wanted.vectors) {
      if (!is_used(name)) read_unused(place, name, table);
    }
    return table;
  }

  /// Why a column cannot be read, and the place of the first episode in which that is so.
  struct Unreadable {
    std::size_t place = 0;
    std::string why;
  };
  /// By column.
  const std::map<std::string, Unreadable>& unreadable() const { return unreadable_; }

 private:
  bool is_used(const std::string& name) const { return std::binary_search(used_.begin(), used_.end(), name); }

  /// Alone: damage to a page of it spoils nothing else.
  void read_unused(std::size_t place, const std::string& name, EpisodeTable& table) {
    TableColumns asked;
    asked.optional_vectors = {name};
    const std::size_t width = widths_.at(name);
    auto read = tables_.read(place, asked);
    if (const auto it = read ? read->vectors.find(name) : table.vectors.end();
        read && it != read->vectors.end() && (it->second.width == width || table.rows == 0)) {
      table.vectors[name] = std::move(it->second);
      return;
    }
    std::string why = fmt::format("it is absent or has not {} values a row", width);
    if (!read) why = read.error().message();
    if (read && read->left_out.contains(name)) why = read->left_out.at(name);
    table.vectors[name] = {width, std::vector<double>(static_cast<std::size_t>(table.rows) * width)};
    const std::lock_guard lock(mutex_);
    const auto [known, is_new] = unreadable_.try_emplace(name, Unreadable{place, why});
    if (!is_new && place < known->second.place) known->second = {place, std::move(why)};
  }

  TableSource tables_;
  std::vector<std::string> used_;  ///< ascending
  std::map<std::string, std::size_t> widths_;
  std::mutex mutex_;
  std::map<std::string, Unreadable> unreadable_;
};

/// Float columns of the feature table, and float-like columns that keys name.
std::vector<WantedColumn> wanted_columns(const LerobotInfo& info, const SampleColumns& keys) {
  const auto used = keys.vector_columns();
  std::vector<WantedColumn> out;
  for (const LerobotFeature& f : info.features) {
    const bool is_used = std::binary_search(used.begin(), used.end(), f.name);
    if ((!f.is_vector() && !is_used) || f.shape.size() > 1) continue;
    out.push_back({f.name, static_cast<std::size_t>(f.width()), f.dtype == "float32"});
  }
  return out;
}

void find_constant(ColumnReport& c) {
  const FeatureStatistics& s = c.statistics;
  for (std::size_t d = 0; d < s.width(); ++d) {
    const double range = s.q99[d] - s.q01[d];
    const double size = std::max(std::abs(s.min[d]), std::abs(s.max[d]));
    if (s.min[d] == s.max[d]) {
      c.constant.push_back(d);
    } else if (range <= kNearConstant * size) {
      c.near_constant.push_back(d);
    }
  }
}

/// D12 over what was computed and what meta/ says.
class StatisticsFindings {
 public:
  explicit StatisticsFindings(HealthReport& report) : report_(report) {}

  void run() {
    std::vector<DatasetProblem> unreadable;
    const std::string path = report_.root + "/meta/stats.json";
    const auto stored = read_statistics_file(path, unreadable);
    for (const DatasetProblem& p : unreadable) add(FindingLevel::warning, p.path, p.text);
    const auto used = report_.keys.vector_columns();
    std::string missing;
    for (const ColumnReport& c : report_.columns) {
      if (!std::binary_search(used.begin(), used.end(), c.name)) continue;
      note_constant(c);
      const auto it = stored.find(c.name);
      if (it == stored.end() || !it->second.is_complete(c.statistics.width())) {
        missing += (missing.empty() ? "" : ", ") + c.name;
      } else {
        compare(path, c, it->second);
      }
    }
    if (!missing.empty() && unreadable.empty()) {
      add(FindingLevel::note, path,
          fmt::format("{} lacks min, max, mean, std, q01 and q99 of {}, or they are not finite; training computes them "
                      "at every first start (troupe stats --write-metadata writes the file where there is none)",
                      path, missing));
    }
    for (const RelativeReport& k : report_.relative) note_constant_relative(k);
  }

 private:
  void add(FindingLevel level, const std::string& path, std::string text) {
    report_.findings.push_back({"D12", level, path, std::move(text), -1});
  }

  void note_constant(const ColumnReport& c) {
    const std::vector<std::size_t> dims = c.statistics.constant_dimensions();
    if (dims.empty()) return;
    add(FindingLevel::warning, report_.root,
        fmt::format("{}: {} is constant (q01 = q99) in {}; normalisation only clamps it to [-1, 1]", report_.root,
                    c.name, dimension_labels(c.names, dims)));
  }

  void note_constant_relative(const RelativeReport& k) {
    const FeatureStatistics& s = k.statistics.pooled;
    if (s.width() == 0) {
      add(FindingLevel::warning, report_.root,
          fmt::format("{}: no episode has the {} rows that relative statistics of {} need", report_.root,
                      report_.horizon, k.action.name));
      return;
    }
    const std::vector<std::size_t> dims = s.constant_dimensions();
    if (!dims.empty())
      add(FindingLevel::warning, report_.root,
          fmt::format("{}: relative {} is constant (q01 = q99) in {}", report_.root, k.action.name,
                      dimension_labels(report_.names_of(k.action), dims)));
  }

  /// Statistics that were made of other rows, or in another way.
  void compare(const std::string& path, const ColumnReport& c, const FeatureStatistics& stored) {
    const FeatureStatistics& s = c.statistics;
    struct Kind {
      const char* name;
      std::vector<double> FeatureStatistics::*values;
      double tolerance;
    };
    const Kind kinds[] = {
        {"min", &FeatureStatistics::min, kStoredTolerance},   {"max", &FeatureStatistics::max, kStoredTolerance},
        {"mean", &FeatureStatistics::mean, kStoredTolerance}, {"std", &FeatureStatistics::std, kStoredTolerance},
        {"q01", &FeatureStatistics::q01, kQuantileTolerance}, {"q99", &FeatureStatistics::q99, kQuantileTolerance}};
    for (const auto& [name, values, tolerance] : kinds) {
      for (std::size_t d = 0; d < s.width(); ++d) {
        const double slack = 1e-6 * std::max(1.0, std::abs((s.*values)[d]));
        const double range = s.max[d] - s.min[d];
        const double said = (stored.*values)[d], is = (s.*values)[d];
        const bool inside =
            said >= s.min[d] - kStoredTolerance * range - slack && said <= s.max[d] + kStoredTolerance * range + slack;
        const bool quantile = tolerance == kQuantileTolerance;
        if (std::abs(said - is) <= tolerance * range + slack && (inside || !quantile)) continue;
        add(FindingLevel::warning, path,
            fmt::format("{}: {} of '{}'{} is {:.6g}; the tables give {:.6g}. It was made of other data: "
                        "delete the file and run troupe stats --write-metadata",
                        path, name, c.name, dimension_label(c.names, d), said, is));
        return;
      }
    }
  }

  HealthReport& report_;
};

}  // namespace

Result<void> compute_statistics(const EpisodeSource& source, std::span<const Episode> episodes,
                                const HealthOptions& options, HealthReport& report) {
  if (episodes.empty()) return {};
  StatisticsPlan plan;
  plan.columns = wanted_columns(source.info(), report.keys);
  for (const ActionKey& a : report.keys.action) {
    if (a.relative) plan.relative.push_back({a.key, a.reference});
  }
  plan.horizon = options.horizon;
  plan.per_step = true;
  plan.memory_bytes = options.memory_bytes;
  plan.threads = options.threads;
  const TableSource tables = tables_of(source, episodes);
  UnusedColumns reader(tables, report.keys, plan.columns);
  TROUPE_ASSIGN(
      const TableStatistics found,
      table_statistics({tables.episodes, tables.rows,
                        [&](std::size_t place, const TableColumns& wanted) { return reader.read(place, wanted); },
                        [&](std::int64_t done, std::int64_t of) {
                          if (options.progress) options.progress("tables", done, of);
                        }},
                       plan));
  report.columns_kept = found.columns_kept;
  report.relative_kept = found.relative_kept;
  report.passes = found.passes;
  for (std::size_t i = 0; i < plan.columns.size(); ++i) {
    const WantedColumn& c = plan.columns[i];
    if (const auto bad = reader.unreadable().find(c.name); bad != reader.unreadable().end()) {
      const auto& [place, why] = bad->second;
      const auto rows = source.files->rows(episodes[place].place);
      const std::string path = rows ? rows->path : report.root;
      report.findings.push_back(
          {"D04", FindingLevel::warning, path,
           fmt::format("{}: column '{}', which no sample uses, has no statistics: {}", path, c.name, why),
           episodes[place].index});
      continue;
    }
    ColumnReport column;
    column.name = c.name;
    column.dtype = source.info().find(c.name)->dtype;
    column.names = source.info().find(c.name)->names;
    column.statistics = found.columns[i];
    find_constant(column);
    report.columns.push_back(std::move(column));
  }
  for (std::size_t i = 0; i < plan.relative.size(); ++i)
    report.relative.push_back({plan.relative[i].action, plan.relative[i].state, found.relative[i]});
  StatisticsFindings(report).run();
  return {};
}

}  // namespace troupe::data
