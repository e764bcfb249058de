#include <gtest/gtest.h>

#include "data/statistics/normalise.h"
#include "tests/data/data_test_support.h"

namespace troupe::data {
namespace {

using Json = OrderedJson;

/// Relative to max(1, |want|), from the golden folder's README.
constexpr double kDoubleTolerance = 1e-12, kFloatTolerance = 1e-6;

class GoldenNormalisationTest : public ::testing::Test {
 protected:
  const std::vector<Json> files_ = golden_files("normalisation");
};

template <class T>
void check_case(const Json& dims, const Json& result, double tolerance) {
  SCOPED_TRACE(dims["name"].get<std::string>() + " " + result["mode"].get<std::string>() + " " +
               result["dtype"].get<std::string>());
  const auto mode = normalization_mode(result["mode"]);
  const Normalizer<T> normalizer(*mode, statistics_of(dims["statistics"]));
  std::vector<T> values = flat<T>(dims["input"][result["dtype"].get<std::string>()]);
  const std::int64_t outside = normalizer.forward(std::span<T>(values));
  EXPECT_LE(worst_error(values, flat<double>(result["output"])), tolerance);
  EXPECT_EQ(outside > 0, result["range_warning"].get<bool>());

  const auto back = normalizer.inverse(std::span<T>(values));
  if (result["inverse_of_output"].is_string()) {
    EXPECT_EQ(back.error().code(), Errc::failed_precondition);
    return;
  }
  ASSERT_TRUE(back);
  EXPECT_LE(worst_error(values, flat<double>(result["inverse_of_output"])), tolerance);
  std::vector<T> probe = {T(-1), T(-0.5), T(0.25), T(1), T(1.5), T(-2), T(0.75), T(0.5)};
  ASSERT_TRUE(normalizer.inverse(std::span<T>(probe)));
  EXPECT_LE(worst_error(probe, flat<double>(result["inverse_of_fixed_probe"])), tolerance);
}

TEST_F(GoldenNormalisationTest, EveryModeMatchesForwardAndInverse) {
  for (const Json& file : files_) {
    EXPECT_TRUE(has_any_part(file, {"per_dimension", "per_horizon"})) << "nothing to compare";
    for (const Json& dims : part_of(file, "per_dimension")) {
      for (const Json& result : dims["results"]) {
        if (result["dtype"] == "float64") check_case<double>(dims, result, kDoubleTolerance);
        if (result["dtype"] == "float32") check_case<float>(dims, result, kFloatTolerance);
      }
    }
  }
}

void check_horizon(const Json& c, const Json& result, std::span<const FeatureStatistics> steps) {
  SCOPED_TRACE(std::to_string(c["input"].size()) + " rows, " + result["mode"].get<std::string>());
  const HorizonNormalizer<double> normalizer(*normalization_mode(result["mode"]), steps);
  std::vector<double> values = flat<double>(c["input"]);
  const auto done = normalizer.forward(values);
  if (result.contains("error")) {
    EXPECT_EQ(done.error().code(), Errc::invalid_argument);
    return;
  }
  ASSERT_TRUE(done);
  EXPECT_LE(worst_error(values, flat<double>(result["output"])), kDoubleTolerance);
  if (result["inverse_of_output"].is_string()) {
    EXPECT_FALSE(normalizer.inverse(values));
    return;
  }
  ASSERT_TRUE(normalizer.inverse(values));
  EXPECT_LE(worst_error(values, flat<double>(result["inverse_of_output"])), kDoubleTolerance);
}

TEST_F(GoldenNormalisationTest, HorizonStatisticsApplyPerStep) {
  for (const Json& file : files_) {
    for (const Json& c : part_of(file, "per_horizon")) {
      std::vector<FeatureStatistics> steps;
      for (std::size_t j = 0; j < c["horizon"].get<std::size_t>(); ++j) {
        Json step;
        for (const auto& [name, rows] : c["statistics"].items()) step[name] = rows[j];
        steps.push_back(statistics_of(step));
      }
      for (const Json& result : c["results"]) check_horizon(c, result, steps);
    }
  }
}

}  // namespace
}  // namespace troupe::data
