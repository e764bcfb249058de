#include "data/mixture_statistics.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "data/statistics/statistics.h"

namespace troupe::data {
namespace {

std::vector<double> random_rows(std::uint64_t stream, std::size_t rows, double centre, double width) {
  CounterRng random(1, stream, 0);
  std::vector<double> out;
  for (std::size_t i = 0; i < 2 * rows; ++i) out.push_back(centre + width * random.normal());
  return out;
}

FeatureStatistics statistics_of_rows(std::span<const double> rows) {
  FeatureStatistics out;
  for (std::size_t d = 0; d < 2; ++d) {
    std::vector<double> column;
    for (std::size_t i = d; i < rows.size(); i += 2) column.push_back(rows[i]);
    ExactSeries series(false, true);
    series.add(column);
    series.end_pass();
    out.append(series.summary());
  }
  return out;
}

TEST(MixtureStatisticsTest, WeightedByRowsMeanAndDeviationAreThoseOfThePool) {
  const auto a = random_rows(0, 300, 2, 1), b = random_rows(1, 100, -5, 3);
  std::vector<double> both = a;
  both.insert(both.end(), b.begin(), b.end());
  const FeatureStatistics of_a = statistics_of_rows(a), of_b = statistics_of_rows(b), pooled = statistics_of_rows(both);
  const FeatureStatistics merged =
      merge_features(std::vector<const FeatureStatistics*>{&of_a, &of_b}, std::vector<double>{3, 1});
  for (std::size_t d = 0; d < 2; ++d) {
    EXPECT_NEAR(merged.mean[d], pooled.mean[d], 1e-12);
    EXPECT_NEAR(merged.std[d], pooled.std[d], 1e-12);
    EXPECT_EQ(merged.min[d], pooled.min[d]);
    EXPECT_EQ(merged.max[d], pooled.max[d]);
    EXPECT_EQ(merged.q01[d], std::min(of_a.q01[d], of_b.q01[d]));
    EXPECT_EQ(merged.q99[d], std::max(of_a.q99[d], of_b.q99[d]));
  }
}

TEST(MixtureStatisticsTest, OnePartStaysAsItIs) {
  const FeatureStatistics s = statistics_of_rows(random_rows(4, 50, 1, 0.5));
  const FeatureStatistics merged = merge_features(std::vector<const FeatureStatistics*>{&s}, std::vector<double>{0.2});
  EXPECT_EQ(merged.mean, s.mean);
  EXPECT_EQ(merged.q01, s.q01);
  for (std::size_t d = 0; d < 2; ++d) EXPECT_NEAR(merged.std[d], s.std[d], 1e-12);
}

TEST(MixtureStatisticsTest, EqualConstantsHaveNoDeviation) {
  const FeatureStatistics s{.min = {0.7}, .max = {0.7}, .mean = {0.7}, .std = {0}, .q01 = {0.7}, .q99 = {0.7}};
  const FeatureStatistics merged =
      merge_features(std::vector<const FeatureStatistics*>{&s, &s, &s}, std::vector<double>{1, 1, 1});
  EXPECT_EQ(merged.mean[0], 0.7);
  EXPECT_EQ(merged.std[0], 0) << "a normaliser leaves such a dimension as it is";
}

}  // namespace
}  // namespace troupe::data
