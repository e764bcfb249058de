// Golden kind `statistics` through the code that `troupe stats` and Dataset run: tables of a dataset, all columns and
// relative keys at once, kept in memory and by refinement.
#include <gtest/gtest.h>

#include "data/lerobot/lerobot_dataset.h"
#include "data/statistics/dataset_statistics.h"
#include "tests/data/data_test_support.h"
#include "tests/data/golden_dataset.h"

namespace troupe::data {
namespace {

using Json = OrderedJson;

void expect_near(const FeatureStatistics& got, const FeatureStatistics& want, double moments, double quantiles) {
  EXPECT_LE(worst_error(got.mean, want.mean), moments);
  EXPECT_LE(worst_error(got.std, want.std), moments);
  EXPECT_LE(worst_error(got.q01, want.q01), quantiles);
  EXPECT_LE(worst_error(got.q99, want.q99), quantiles);
}

std::vector<float> as_floats(const std::vector<double>& values) { return {values.begin(), values.end()}; }

/// The cases, each with what table_statistics finds in its dataset.
class GoldenStatisticsTest : public ::testing::Test {
 protected:
  /// Calls `check(file, plan, found)` for every case. 0 bytes of memory: values are read again to refine quantiles.
  template <class Check>
  void for_each_case(std::int64_t memory_bytes, const Check& check) {
    const auto cases = statistics_cases();
    ASSERT_FALSE(cases.empty()) << "no golden case of kind statistics whose dataset is here in " << golden_roots_text();
    for (const auto& [source, file, root] : cases) {
      SCOPED_TRACE(source.file.string());
      open(root);
      const auto modality = read_modality(root, files_->info());
      StatisticsPlan plan = plan_of(file, *modality);
      plan.memory_bytes = memory_bytes;
      ASSERT_FALSE(plan.columns.empty() && plan.relative.empty()) << "the file has nothing to compare";
      check(file, plan, table_statistics(tables(places_of(file)), plan).value());
    }
  }

  /// Makes the dataset of a case the one that the functions below read.
  void open(const std::string& root) {
    auto files = LerobotDataset::open(root);
    files_ = std::make_shared<const LerobotDataset>(std::move(*files));
  }

  /// The episodes that a case names, or all.
  std::vector<std::size_t> places_of(const Json& file) const {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < files_->episodes().size(); ++i) {
      if (is_about(file, files_->episodes()[i].index)) out.push_back(i);
    }
    return out;
  }

  TableSource tables(const std::vector<std::size_t>& places) const {
    return {.episodes = places.size(),
            .rows = [this, places](std::size_t i) { return files_->episodes()[places[i]].length; },
            .read = [this, places](std::size_t i, const TableColumns& columns) -> Result<EpisodeTable> {
              TROUPE_ASSIGN(const RowSource rows, files_->rows(places[i]));
              return read_parquet(rows.path, columns, {rows.first_row, files_->episodes()[places[i]].length});
            }};
  }

  StatisticsPlan plan_of(const Json& file, const Modality& modality) const {
    StatisticsPlan plan;
    plan.per_step = true;
    plan.threads = 2;
    if (file.contains("action_delta_indices"))
      plan.horizon = static_cast<std::int64_t>(file["action_delta_indices"].size());
    const Json columns = file.value("runtime_statistics", Json::object());
    const Json relative = file.value("relative_statistics", Json::object());
    for (const auto& [name, want] : columns.items()) {
      const LerobotFeature* feature = files_->info().find(name);
      plan.columns.push_back({name, static_cast<std::size_t>(feature->width()), feature->dtype == "float32"});
    }
    for (const auto& [name, want] : relative.items())
      plan.relative.push_back({key_named(modality.action, name), key_named(modality.state, name)});
    return plan;
  }

  std::shared_ptr<const LerobotDataset> files_;
};

void expect_columns(const Json& file, const StatisticsPlan& plan, const TableStatistics& found) {
  for (std::size_t i = 0; i < plan.columns.size(); ++i) {
    SCOPED_TRACE(plan.columns[i].name);
    const FeatureStatistics want = statistics_of(file["runtime_statistics"][plan.columns[i].name]);
    EXPECT_EQ(as_floats(found.columns[i].min), as_floats(want.min));
    EXPECT_EQ(as_floats(found.columns[i].max), as_floats(want.max));
    expect_near(found.columns[i], want, kRuntimeMoments, kRuntimeQuantiles);
  }
}

void expect_relative(const FeatureStatistics& got, const FeatureStatistics& want) {
  EXPECT_LE(worst_error(got.min, want.min), kRelative);
  EXPECT_LE(worst_error(got.max, want.max), kRelative);
  expect_near(got, want, kRelative, kRelative);
}

void expect_relative_actions(const Json& file, const StatisticsPlan& plan, const TableStatistics& found) {
  for (std::size_t i = 0; i < plan.relative.size(); ++i) {
    const std::string& name = plan.relative[i].action.name;
    SCOPED_TRACE(name);
    expect_relative(found.relative[i].pooled, statistics_of(file["relative_statistics"][name]));
    if (!file.contains("relative_per_horizon_statistics")) continue;
    const Json& steps = file["relative_per_horizon_statistics"][name];
    ASSERT_EQ(steps["mean"].size(), found.relative[i].steps.size());
    for (std::size_t j = 0; j < found.relative[i].steps.size(); ++j) {
      Json step;
      for (const auto& [statistic, rows] : steps.items()) step[statistic] = rows[j];
      expect_relative(found.relative[i].steps[j], statistics_of(step));
    }
  }
}

constexpr std::int64_t kKept = std::int64_t{1} << 30, kRefined = 0;

TEST_F(GoldenStatisticsTest, OnePassOverTheTablesGivesTheRuntimeStatistics) { for_each_case(kKept, expect_columns); }

TEST_F(GoldenStatisticsTest, RelativeStatisticsPooledAndPerHorizon) { for_each_case(kKept, expect_relative_actions); }

class GoldenDatasetStatisticsTest : public GoldenStatisticsTest, public ::testing::WithParamInterface<std::int64_t> {};

TEST_P(GoldenDatasetStatisticsTest, ColumnsAndRelativeActionsAreTheReferences) {
  for_each_case(GetParam(), [](const Json& file, const StatisticsPlan& plan, const TableStatistics& found) {
    expect_columns(file, plan, found);
    expect_relative_actions(file, plan, found);
  });
}

INSTANTIATE_TEST_SUITE_P(Memory, GoldenDatasetStatisticsTest, ::testing::Values(kKept, kRefined),
                         [](const auto& given) { return given.param == kRefined ? "Refined" : "Kept"; });

}  // namespace
}  // namespace troupe::data
