// Golden kind `statistics` through the code that `troupe stats` and Dataset run: tables of a dataset, all columns and
// relative keys at once, kept in memory and by refinement.
#include <gtest/gtest.h>

#include <algorithm>

#include "data/lerobot/lerobot_dataset.h"
#include "data/statistics/dataset_statistics.h"
#include "tests/data/data_test_support.h"
#include "tests/data/golden_dataset.h"

namespace troupe::data {
namespace {

using Json = OrderedJson;

// GEAR sums float32 columns in float32; its relative statistics are float64 throughout.
constexpr double kRuntimeMoments = 3e-5, kRuntimeQuantiles = 1e-6, kRelative = 1e-9;

void expect_near(const FeatureStatistics& got, const FeatureStatistics& want, double moments, double quantiles) {
  EXPECT_LE(worst_error(got.mean, want.mean), moments);
  EXPECT_LE(worst_error(got.std, want.std), moments);
  EXPECT_LE(worst_error(got.q01, want.q01), quantiles);
  EXPECT_LE(worst_error(got.q99, want.q99), quantiles);
}

std::vector<float> as_floats(const std::vector<double>& values) { return {values.begin(), values.end()}; }

class GoldenDatasetStatisticsTest : public ::testing::TestWithParam<std::int64_t> {
 protected:
  /// Makes the dataset of a case the one that the functions below read.
  void open(const std::string& root) {
    auto files = LerobotDataset::open(root);
    ASSERT_TRUE(files) << files.error().message();
    files_ = std::make_shared<const LerobotDataset>(std::move(*files));
  }

  /// The episodes that a case names, or all.
  std::vector<std::size_t> places_of(const Json& file) const {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < files_->episodes().size(); ++i) {
      const std::int64_t index = files_->episodes()[i].index;
      if (file.contains("episodes") &&
          std::find(file["episodes"].begin(), file["episodes"].end(), index) == file["episodes"].end())
        continue;
      out.push_back(i);
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
    plan.memory_bytes = GetParam();
    if (file.contains("action_delta_indices"))
      plan.horizon = static_cast<std::int64_t>(file["action_delta_indices"].size());
    const Json columns = file.value("runtime_statistics", Json::object());
    const Json relative = file.value("relative_statistics", Json::object());
    for (const auto& [name, want] : columns.items()) {
      const LerobotFeature* feature = files_->info().find(name);
      plan.columns.push_back({name, static_cast<std::size_t>(feature->shape.empty() ? 1 : feature->shape[0]),
                              feature->dtype == "float32"});
    }
    const auto named = [](const std::vector<VectorKey>& keys, const std::string& name) {
      return *std::find_if(keys.begin(), keys.end(), [&](const VectorKey& k) { return k.name == name; });
    };
    for (const auto& [name, want] : relative.items())
      plan.relative.push_back({named(modality.action, name), named(modality.state, name)});
    return plan;
  }

  std::shared_ptr<const LerobotDataset> files_;
};

TEST_P(GoldenDatasetStatisticsTest, ColumnsAndRelativeActionsAreTheReferences) {
  const auto cases = statistics_cases();
  if (cases.empty())
    GTEST_SKIP() << "no golden case of kind statistics whose dataset is here in " << golden_roots_text();
  for (const auto& [source, file, root] : cases) {
    SCOPED_TRACE(source.file.string());
    ASSERT_NO_FATAL_FAILURE(open(root));
    const auto modality = read_modality(root, files_->info());
    ASSERT_TRUE(modality) << modality.error().message();
    const StatisticsPlan plan = plan_of(file, *modality);
    ASSERT_FALSE(plan.columns.empty() && plan.relative.empty()) << "the file has nothing to compare";
    const auto found = table_statistics(tables(places_of(file)), plan);
    ASSERT_TRUE(found) << found.error().message();
    for (std::size_t i = 0; i < plan.columns.size(); ++i) {
      SCOPED_TRACE(plan.columns[i].name);
      const FeatureStatistics want = statistics_of(file["runtime_statistics"][plan.columns[i].name]);
      EXPECT_EQ(as_floats(found->columns[i].min), as_floats(want.min));
      EXPECT_EQ(as_floats(found->columns[i].max), as_floats(want.max));
      expect_near(found->columns[i], want, kRuntimeMoments, kRuntimeQuantiles);
    }
    for (std::size_t i = 0; i < plan.relative.size(); ++i) {
      const std::string& name = plan.relative[i].action.name;
      SCOPED_TRACE(name);
      const FeatureStatistics want = statistics_of(file["relative_statistics"][name]);
      EXPECT_LE(worst_error(found->relative[i].pooled.min, want.min), kRelative);
      EXPECT_LE(worst_error(found->relative[i].pooled.max, want.max), kRelative);
      expect_near(found->relative[i].pooled, want, kRelative, kRelative);
      if (!file.contains("relative_per_horizon_statistics")) continue;
      const Json& steps = file["relative_per_horizon_statistics"][name];
      ASSERT_EQ(steps["mean"].size(), found->relative[i].steps.size());
      for (std::size_t j = 0; j < found->relative[i].steps.size(); ++j) {
        Json step;
        for (const auto& [statistic, rows] : steps.items()) step[statistic] = rows[j];
        const FeatureStatistics of_step = statistics_of(step);
        EXPECT_LE(worst_error(found->relative[i].steps[j].min, of_step.min), kRelative);
        EXPECT_LE(worst_error(found->relative[i].steps[j].max, of_step.max), kRelative);
        expect_near(found->relative[i].steps[j], of_step, kRelative, kRelative);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Memory, GoldenDatasetStatisticsTest, ::testing::Values(std::int64_t{1} << 30, 0),
                         [](const auto& given) { return given.param == 0 ? "Refined" : "Kept"; });

}  // namespace
}  // namespace troupe::data
