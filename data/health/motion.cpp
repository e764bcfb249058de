#include "data/health/motion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/parallel.h"

namespace troupe::data {

namespace {

constexpr std::size_t kHistogramBins = 48;
constexpr double kOutlierRanges = 3.0;  ///< of q99 - q01, beyond q01 or q99
constexpr double kJumpRange = 0.5;      ///< of q99 - q01, in one row
constexpr std::int64_t kLevels = 3;     ///< a dimension with so few (a gripper's command) jumps by nature

/// The state of one call.
class Motion {
 public:
  Motion(std::span<ColumnReport> columns, const MotionPlan& plan, std::size_t episodes)
      : columns_(columns), plan_(plan), out_(episodes) {
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const FeatureStatistics& s = columns_[c].statistics;
      columns_[c].histograms.clear();
      for (std::size_t d = 0; d < s.width(); ++d) {
        dims_.push_back({c, d});
        columns_[c].histograms.push_back({s.min[d], s.max[d], std::vector<std::int64_t>(kHistogramBins)});
      }
    }
    outliers_.resize(dims_.size(), std::vector<std::int32_t>(episodes));
    jumps_ = outliers_;
  }

  TableColumns read_columns() const {
    TableColumns out;
    for (const ColumnReport& c : columns_) out.vectors.push_back(c.name);
    return out;
  }

  void visit(std::size_t first, std::span<const EpisodeTable> tables) {
    parallel_for(dims_.size(), plan_.threads, [&](std::size_t i) {
      for (std::size_t t = 0; t < tables.size(); ++t) measure(i, first + t, tables[t]);
    });
    parallel_for(tables.size(), plan_.threads, [&](std::size_t t) {
      find_idle(tables[t], out_[first + t]);
      hash_content(tables[t], out_[first + t]);
      if (plan_.on_table) plan_.on_table(first + t, tables[t]);
    });
  }

  std::vector<EpisodeMotion> finish() {
    for (std::size_t i = 0; i < dims_.size(); ++i) {
      const Histogram& h = columns_[dims_[i].column].histograms[dims_[i].dim];
      const auto levels = std::count_if(h.counts.begin(), h.counts.end(), [](std::int64_t n) { return n > 0; });
      for (std::size_t e = 0; e < out_.size(); ++e) {
        out_[e].outliers += outliers_[i][e];
        if (levels > kLevels) out_[e].jumps += jumps_[i][e];
      }
    }
    return std::move(out_);
  }

 private:
  struct Dimension {
    std::size_t column = 0, dim = 0;
  };

  void measure(std::size_t i, std::size_t episode, const EpisodeTable& table) {
    ColumnReport& column = columns_[dims_[i].column];
    const std::size_t d = dims_[i].dim;
    const VectorColumn& values = table.vectors.at(column.name);
    const FeatureStatistics& s = column.statistics;
    Histogram& h = column.histograms[d];
    const double range = s.q99[d] - s.q01[d];
    const double low = s.q01[d] - kOutlierRanges * range, high = s.q99[d] + kOutlierRanges * range;
    const double scale = h.high > h.low ? static_cast<double>(kHistogramBins) / (h.high - h.low) : 0;
    double before = 0;
    for (std::int64_t r = 0; r < table.rows; ++r) {
      const double x = values.values[static_cast<std::size_t>(r) * values.width + d];
      const double bin = std::clamp((x - h.low) * scale, 0.0, static_cast<double>(kHistogramBins - 1));
      ++h.counts[static_cast<std::size_t>(bin)];
      if (range > 0) {
        if (x < low || x > high) ++outliers_[i][episode];
        if (r > 0 && std::abs(x - before) > kJumpRange * range) ++jumps_[i][episode];
      }
      before = x;
    }
  }

  void find_idle(const EpisodeTable& table, EpisodeMotion& out) const {
    if (plan_.idle.empty()) return;
    std::int64_t stretch = 0;
    for (std::int64_t r = 1; r < table.rows; ++r) {
      const bool same = std::all_of(plan_.idle.begin(), plan_.idle.end(), [&](const std::string& name) {
        const VectorColumn& c = table.vectors.at(name);
        const auto a = c.row(r - 1), b = c.row(r);
        return std::equal(a.begin(), a.end(), b.begin(),
                          [](double x, double y) { return static_cast<float>(x) == static_cast<float>(y); });
      });
      stretch = same ? stretch + 1 : 0;
      out.idle_rows += same ? 1 : 0;
      out.longest_idle = std::max(out.longest_idle, stretch);
    }
  }

  void hash_content(const EpisodeTable& table, EpisodeMotion& out) const {
    if (plan_.hashed.empty() || table.rows == 0) return;
    Xxh3Stream hash;
    for (const std::string& name : plan_.hashed) {
      const VectorColumn& c = table.vectors.at(name);
      const std::string head = fmt::format("{} {} {}\n", name, table.rows, c.width);
      hash.update(std::as_bytes(std::span(head.data(), head.size())));
      hash.update(std::as_bytes(std::span(c.values)));
    }
    out.content = hash.hex();
  }

  std::span<ColumnReport> columns_;
  const MotionPlan& plan_;
  std::vector<EpisodeMotion> out_;
  std::vector<Dimension> dims_;
  std::vector<std::vector<std::int32_t>> outliers_, jumps_;  ///< by dimension, then episode
};

}  // namespace

Result<std::vector<EpisodeMotion>> measure_motion(const TableSource& source, std::span<ColumnReport> columns,
                                                  const MotionPlan& plan) {
  Motion motion(columns, plan, source.episodes);
  TROUPE_TRY(for_each_round(source, motion.read_columns(), plan.threads,
                            [&](std::size_t first, std::span<const EpisodeTable> tables) -> Result<void> {
                              motion.visit(first, tables);
                              return {};
                            }));
  return motion.finish();
}

}  // namespace troupe::data
