#include "data/statistics/exact_series.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

namespace troupe::data {
namespace {

/// How the values of one case are made.
struct SeriesCase {
  const char* name;
  std::vector<double> values;
  friend std::ostream& operator<<(std::ostream& out, const SeriesCase& c) { return out << c.name; }
};

std::vector<double> drawn(std::size_t n, const std::function<double(std::mt19937_64&)>& draw) {
  std::mt19937_64 engine(7);
  std::vector<double> out(n);
  for (double& v : out) v = draw(engine);
  return out;
}

std::vector<SeriesCase> cases() {
  const double tiny = std::numeric_limits<float>::denorm_min(), huge = std::numeric_limits<float>::max();
  return {
      {"OneValue", {3.25}},
      {"TwoValues", {1.5, -2.5}},
      {"Constant", std::vector<double>(1000, 0.1)},
      {"BothZeros", {0.0, -0.0, 0.0, -0.0, 1.0}},
      {"Normal", drawn(20000, [](auto& e) { return std::normal_distribution<double>(0.3, 2.0)(e); })},
      {"FarFromZero", drawn(5000, [](auto& e) { return 1e6 + std::normal_distribution<double>(0, 1e-2)(e); })},
      {"ManyTies", drawn(9999, [](auto& e) { return std::floor(std::uniform_real_distribution<double>(-3, 3)(e)); })},
      {"ManyMagnitudes", drawn(5000,
                               [](auto& e) {
                                 const double size = std::pow(10.0, std::uniform_real_distribution<double>(-30, 30)(e));
                                 return std::bernoulli_distribution(0.5)(e) ? size : -size;
                               })},
      {"Extremes", {tiny, -tiny, 0, huge, -huge, 1, -1, tiny, 2 * tiny}},
  };
}

/// numpy's linear quantile of sorted values.
double quantile(const std::vector<double>& sorted, double p) {
  const double at = p * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const double t = at - std::floor(at);
  if (t == 0) return sorted[low];
  const double a = sorted[low], b = sorted[low + 1];
  return t < 0.5 ? a + (b - a) * t : b - (b - a) * (1 - t);
}

SeriesSummary run(const std::vector<double>& values, bool narrow, bool keep, std::size_t block, int* passes = nullptr) {
  ExactSeries series(narrow, keep);
  for (int pass = 1; series.wants_pass(); ++pass) {
    for (std::size_t i = 0; i < values.size(); i += block)
      series.add(std::span(values).subspan(i, std::min(block, values.size() - i)));
    series.end_pass();
    if (passes != nullptr) *passes = pass;
  }
  return series.summary();
}

class ExactSeriesTest : public ::testing::TestWithParam<SeriesCase> {};

TEST_P(ExactSeriesTest, KeptAndRefinedValuesGiveTheQuantilesOfTheSortedValues) {
  for (const bool narrow : {false, true}) {
    std::vector<double> values = GetParam().values;
    if (narrow) {
      for (double& v : values) v = static_cast<double>(static_cast<float>(v));
    }
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    for (const bool keep : {true, false}) {
      SCOPED_TRACE(std::string(narrow ? "float32" : "float64") + (keep ? " kept" : " refined"));
      int passes = 0;
      const SeriesSummary got = run(values, narrow, keep, 777, &passes);
      EXPECT_EQ(got.count, static_cast<std::int64_t>(values.size()));
      EXPECT_EQ(got.min, sorted.front());
      EXPECT_EQ(got.max, sorted.back());
      for (std::size_t i = 0; i < got.quantiles.size(); ++i)
        EXPECT_EQ(got.quantiles[i], quantile(sorted, SeriesSummary::kQuantiles[i])) << SeriesSummary::kQuantiles[i];
      EXPECT_LE(passes, keep ? 1 : narrow ? 4 : 6);
    }
  }
}

TEST_P(ExactSeriesTest, MomentsAreThoseOfLongDoubleArithmetic) {
  const std::vector<double>& values = GetParam().values;
  long double sum = 0, squares = 0;
  for (double v : values) sum += v;
  const long double mean = sum / static_cast<long double>(values.size());
  for (double v : values) squares += (v - mean) * (v - mean);
  const auto std = static_cast<double>(std::sqrt(squares / static_cast<long double>(values.size())));
  const SeriesSummary got = run(values, false, false, 100);
  const double size = std::max(std::abs(got.min), std::abs(got.max));
  EXPECT_NEAR(got.mean, static_cast<double>(mean), 1e-14 * size);
  EXPECT_NEAR(got.std, std, 1e-15 * size + 1e-12 * std);  // the spread of numbers far from 0 is small beside them
}

TEST_P(ExactSeriesTest, LaterPassesMayComeInAnyOrderAndBlocks) {
  const std::vector<double>& values = GetParam().values;
  ExactSeries series(false, false);
  std::vector<double> order = values;
  series.add(order);
  series.end_pass();
  while (series.wants_pass()) {
    std::reverse(order.begin(), order.end());
    for (double v : order) series.add(std::span(&v, 1));
    series.end_pass();
  }
  EXPECT_EQ(series.summary().quantiles, run(values, false, true, values.size()).quantiles);
}

INSTANTIATE_TEST_SUITE_P(All, ExactSeriesTest, ::testing::ValuesIn(cases()),
                         [](const auto& given) { return std::string(given.param.name); });

TEST(ExactSeriesEmptyTest, NothingAddedIsCountZeroAndNoFurtherPass) {
  for (const bool keep : {true, false}) {
    ExactSeries series(false, keep);
    series.end_pass();
    EXPECT_FALSE(series.wants_pass());
    EXPECT_EQ(series.summary().count, 0);
  }
}

TEST(ExactSeriesEmptyTest, AConstantSeriesHasItsValueAsMeanAndNoSpread) {
  const SeriesSummary got = run(std::vector<double>(12345, 0.1), false, false, 100);
  EXPECT_EQ(got.mean, 0.1);
  EXPECT_EQ(got.std, 0.0);
}

}  // namespace
}  // namespace troupe::data
