#include "model/loss/sac_loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/model/loss/doubles.h"

namespace troupe::model {
namespace {

TEST(SacLossTest, ASubsetOfTheCriticsIsAggregated) {
  const auto values = f64({5, 1, 3}, {1, 3});
  const auto subset = at::tensor({0, 2}, at::kLong);
  EXPECT_EQ(aggregate_critics(values, CriticAggregation::min, subset).item<double>(), 3);
  EXPECT_EQ(aggregate_critics(values, CriticAggregation::mean, subset).item<double>(), 4);
}

TEST(SacLossTest, ATerminationCutsTheTarget) {
  const auto one = at::ones({1, 1}, at::kDouble);
  EXPECT_EQ(sac_target(one, 0 * one, 7 * one, one, at::ones({}), true).item<double>(), 1);
}

TEST(SacLossTest, WithoutBackupEntropyTheTemperatureIsLeftOut) {
  const auto one = at::ones({1, 1}, at::kDouble);
  EXPECT_EQ(sac_target(one, one, 7 * one, 3 * one, at::full({}, 2.0), false).item<double>(), 8);
  EXPECT_EQ(sac_target(one, one, 7 * one, 3 * one, at::full({}, 2.0), true).item<double>(), 2);
}

TEST(SacLossTest, TemperatureParametersGiveTheStartingAlpha) {
  for (const auto kind : {TemperatureKind::exp, TemperatureKind::softplus, TemperatureKind::fixed}) {
    const auto p = at::full({}, temperature_parameter(.3, kind), at::kDouble);
    EXPECT_NEAR(temperature(p, kind).item<double>(), .3, 1e-12);
  }
}

TEST(SacLossTest, TheTemperatureRisesWhileTheEntropyIsBelowItsTarget) {
  auto p = at::zeros({}, at::kDouble).requires_grad_(true);
  // entropy 1, target 2
  sac_temperature_loss(temperature(p, TemperatureKind::exp), f64({-1, -1}, {2, 1}), 2).backward();
  EXPECT_LT(p.grad().item<double>(), 0);
}

}  // namespace
}  // namespace troupe::model
