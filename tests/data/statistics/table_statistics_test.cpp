#include "data/statistics/table_statistics.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>

namespace troupe::data {
namespace {

/// Episodes of drawn numbers: a float32 column of three dimensions, a float64 column of two.
class TableStatisticsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::mt19937_64 engine(3);
    std::normal_distribution<double> normal(0.5, 3);
    for (std::int64_t rows : {50, 3, 120, 24, 0, 77}) {
      EpisodeTable table;
      table.rows = rows;
      for (const auto& [name, width] : {std::pair("state", 3u), std::pair("action", 2u)}) {
        VectorColumn column;
        column.width = width;
        for (std::int64_t i = 0; i < rows * width; ++i)
          column.values.push_back(width == 3 ? static_cast<double>(static_cast<float>(normal(engine)))
                                             : normal(engine));
        table.vectors[name] = std::move(column);
      }
      tables_.push_back(std::move(table));
    }
    plan_.columns = {{"state", 3, true}, {"action", 2, false}};
    plan_.relative = {{{"arm", "action", 0, 2}, {"arm", "state", 1, 3}}};
    plan_.horizon = 5;
    plan_.per_step = true;
  }

  TableSource source() {
    return {.episodes = tables_.size(),
            .rows = [this](std::size_t i) { return tables_[i].rows; },
            .read = [this](std::size_t i, const TableColumns& columns) -> Result<EpisodeTable> {
              ++reads_;
              EpisodeTable out;
              out.rows = tables_[i].rows;
              for (const std::string& name : columns.vectors) out.vectors[name] = tables_[i].vectors.at(name);
              return out;
            }};
  }
  TableStatistics compute() { return table_statistics(source(), plan_).value(); }

  static void expect_same(const FeatureStatistics& a, const FeatureStatistics& b) {
    for (auto member : {&FeatureStatistics::min, &FeatureStatistics::max, &FeatureStatistics::mean,
                        &FeatureStatistics::std, &FeatureStatistics::q01, &FeatureStatistics::q10,
                        &FeatureStatistics::q50, &FeatureStatistics::q90, &FeatureStatistics::q99}) {
      EXPECT_EQ(a.*member, b.*member);
    }
  }
  static void expect_same(const TableStatistics& a, const TableStatistics& b) {
    ASSERT_EQ(a.columns.size(), b.columns.size());
    for (std::size_t i = 0; i < a.columns.size(); ++i) expect_same(a.columns[i], b.columns[i]);
    ASSERT_EQ(a.relative.size(), b.relative.size());
    for (std::size_t i = 0; i < a.relative.size(); ++i) {
      expect_same(a.relative[i].pooled, b.relative[i].pooled);
      ASSERT_EQ(a.relative[i].steps.size(), b.relative[i].steps.size());
      for (std::size_t j = 0; j < a.relative[i].steps.size(); ++j)
        expect_same(a.relative[i].steps[j], b.relative[i].steps[j]);
    }
  }

  std::vector<EpisodeTable> tables_;
  StatisticsPlan plan_;
  std::atomic<int> reads_{0};
};

TEST_F(TableStatisticsTest, OnePassReadsEveryTableOnceWhereValuesFit) {
  const TableStatistics found = compute();
  EXPECT_EQ(found.passes, 1);
  EXPECT_EQ(reads_, static_cast<int>(tables_.size()));
  EXPECT_TRUE(found.columns_kept);
  EXPECT_TRUE(found.relative_kept);
  EXPECT_EQ(found.rows, 274);
}

TEST_F(TableStatisticsTest, ThreadsDoNotChangeABit) {
  plan_.threads = 1;
  const TableStatistics one = compute();
  plan_.threads = 4;
  expect_same(compute(), one);
}

TEST_F(TableStatisticsTest, MemoryDoesNotChangeABit) {
  const TableStatistics kept = compute();
  plan_.memory_bytes = 0;
  const TableStatistics refined = compute();
  EXPECT_FALSE(refined.columns_kept);
  EXPECT_FALSE(refined.relative_kept);
  EXPECT_GT(refined.passes, 1);
  EXPECT_LE(refined.passes, 6);
  expect_same(refined, kept);
  plan_.memory_bytes = 274 * (3 * 4 + 2 * 8);  // the columns just fit, the relative actions do not
  const TableStatistics mixed = compute();
  EXPECT_TRUE(mixed.columns_kept);
  EXPECT_FALSE(mixed.relative_kept);
  expect_same(mixed, kept);
}

TEST_F(TableStatisticsTest, RelativeActionsAreThePoolOfAllDifferences) {
  const TableStatistics found = compute();
  std::vector<FeatureStatistics> want(6);  // of each step, and of all
  for (std::size_t d = 0; d < 2; ++d) {
    std::vector<ExactSeries> series(6, ExactSeries(false, true));
    for (const EpisodeTable& t : tables_) {
      for (std::int64_t j = 0; j < 5; ++j) {
        std::vector<double> differences;
        for (std::int64_t r = 0; r + 5 <= t.rows; ++r)
          differences.push_back(t.vectors.at("action").row(r + j)[d] - t.vectors.at("state").row(r)[d + 1]);
        series[static_cast<std::size_t>(j)].add(differences);
        series[5].add(differences);
      }
    }
    for (std::size_t i = 0; i < 6; ++i) {
      series[i].end_pass();
      want[i].append(series[i].summary());
    }
  }
  expect_same(found.relative[0].pooled, want[5]);
  for (std::size_t j = 0; j < 5; ++j) expect_same(found.relative[0].steps[j], want[j]);
}

TEST_F(TableStatisticsTest, NoEpisodeLongEnoughLeavesRelativeStatisticsEmpty) {
  plan_.horizon = 121;
  EXPECT_EQ(compute().relative[0].pooled.width(), 0u);
}

TEST_F(TableStatisticsTest, AColumnOfAnotherWidthIsRefused) {
  plan_.columns[0].width = 4;
  const auto found = table_statistics(source(), plan_);
  EXPECT_EQ(found.error().code(), Errc::invalid_argument);
  EXPECT_NE(found.error().message().find("column 'state' has 3 values"), std::string::npos) << found.error().message();
}

TEST_F(TableStatisticsTest, AnUnreadableTableIsTheError) {
  TableSource broken = source();
  broken.read = [](std::size_t i, const TableColumns&) -> Result<EpisodeTable> {
    return Error{Errc::data_loss, "table " + std::to_string(i)};
  };
  EXPECT_EQ(table_statistics(broken, plan_).error().message(), "table 0");
}

}  // namespace
}  // namespace troupe::data
