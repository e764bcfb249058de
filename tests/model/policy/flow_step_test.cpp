#include "model/policy/flow_step.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "model/policy/gaussian.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

constexpr double kVector = 1e-5;  // tolerance of worked examples

struct Row {
  double time, clean, noisy, std;
};

void expect_weights(FlowMethod method, std::int64_t steps, std::int64_t index, double level, const Row& want) {
  const auto times = flow_times(steps);
  const auto got = flow_weights(method, times, index, level);
  EXPECT_NEAR(times[static_cast<std::size_t>(index)], want.time, kVector) << index;
  EXPECT_NEAR(got.clean, want.clean, kVector) << index;
  EXPECT_NEAR(got.noisy, want.noisy, kVector) << index;
  EXPECT_NEAR(got.std, want.std, kVector) << index;
}

TEST(FlowStepTest, FlowSdeHasTheWeightsOfVectorSeven) {
  expect_weights(FlowMethod::sde, 4, 0, 0.5, {1, 0.25, 0.625, 0.5});
  expect_weights(FlowMethod::sde, 4, 1, 0.5, {0.75, 0.5, 0.375, 0.433013});
  expect_weights(FlowMethod::sde, 4, 2, 0.5, {0.5, 0.75, 0.1875, 0.25});
  expect_weights(FlowMethod::sde, 4, 3, 0.5, {0.25, 1, -0.041667, 0.144338});
  expect_weights(FlowMethod::sde, 5, 0, 0.5, {1, 0.2, 0.675, 0.5});
  expect_weights(FlowMethod::sde, 5, 4, 0.5, {0.2, 1, -0.03125, 0.111803});
}

TEST(FlowStepTest, FlowCpsHasTheWidthsOfVectorEightAndTheSameNoisyWeight) {
  const double want[] = {0.53033, 0.353553, 0.176777, 0};
  for (std::int64_t i = 0; i < 4; ++i) {
    const auto weights = flow_weights(FlowMethod::cps, flow_times(4), i, 0.5);
    EXPECT_NEAR(weights.std, want[i], kVector) << i;
    EXPECT_NEAR(weights.noisy, want[i], kVector) << i;
  }
}

TEST(FlowStepTest, TheNoiseHeadHasTheWidthsOfVectorEight) {
  const auto std = flow_noise_std(at::tensor({-1.0, 0.0, 1.0}, at::kDouble));
  testing::expect_near(std, at::tensor({0.086891, 0.113137, 0.147311}, at::kDouble), kVector, "std");
}

TEST(FlowStepTest, TheDensityIsThatOfVectorNine) {
  const auto value = [](double x) { return at::full({1}, x, at::kDouble); };
  EXPECT_NEAR(flow_step_logp(value(0.1), value(0.05), value(0.1), false).item<double>(), 1.258647, kVector);
  EXPECT_NEAR(gaussian_logp(value(0.05), value(std::log(0.1)), value(0.1)).item<double>(), 1.258647, kVector);
  EXPECT_NEAR(flow_step_logp(value(0.3), value(0.3), value(0.01), false).item<double>(), 3.686232, kVector)
      << "may exceed zero";
}

TEST(FlowStepTest, TheSafeVariantIsTheSquaredDistance) {
  const auto x = at::tensor({0.5, -1.0}, at::kDouble), mean = at::tensor({0.2, 1.0}, at::kDouble);
  testing::expect_near(flow_step_logp(x, mean, at::full({2}, 0.1, at::kDouble), true),
                       at::tensor({-0.09, -4.0}, at::kDouble), 1e-12, "safe");
}

TEST(FlowStepTest, AStepWithoutWidthHasNoDensityAndNoGradient) {
  const auto mean = at::tensor({0.5, 0.5}, at::kDouble).requires_grad_(true),
             std = at::tensor({0.0, 9e-7}, at::kDouble).requires_grad_(true);
  for (const bool safe : {false, true}) {
    const auto logp = flow_step_logp(at::tensor({1.0, 2.0}, at::kDouble), mean, std, safe);
    EXPECT_EQ(logp.abs().sum().item<double>(), 0) << safe;
    const auto gradient = torch::autograd::grad({logp.sum() + 0 * (mean.sum() + std.sum())}, {mean, std});
    for (const auto& g : gradient) EXPECT_EQ(g.abs().sum().item<double>(), 0) << safe;
  }
  EXPECT_EQ(flow_step_entropy(std).abs().sum().item<double>(), 0);
}

// d logp / d mean = (x - mean) / std^2.
TEST(FlowStepTest, TheGradientOfTheDensityByTheMeanIsTheStandardisedDistance) {
  const auto x = at::tensor({0.4, -0.3, 2.0}, at::kDouble), std = at::tensor({0.1, 0.5, 1.5}, at::kDouble);
  const auto mean = at::tensor({0.1, 0.2, -1.0}, at::kDouble).requires_grad_(true);
  const auto gradient = torch::autograd::grad({flow_step_logp(x, mean, std, false).sum()}, {mean})[0];
  testing::expect_near(gradient, ((x - mean) / std.square()).detach(), 1e-12, "d logp / d mean");
}

TEST(FlowStepTest, TheNoiseLevelMovesInAStraightLineAndStays) {
  FlowPolicyConfig flow;
  flow.noise_level = 0.7;
  flow.noise_level_end = 0.3;
  flow.noise_anneal_steps = 400;
  EXPECT_DOUBLE_EQ(flow_noise_level(flow, 0), 0.7);
  EXPECT_DOUBLE_EQ(flow_noise_level(flow, 100), 0.6);
  EXPECT_DOUBLE_EQ(flow_noise_level(flow, 4000), 0.3);
  flow.noise_anneal_steps = 0;
  EXPECT_DOUBLE_EQ(flow_noise_level(flow, 4000), 0.7) << "0 steps: it does not move";
}

TEST(FlowStepTest, RowsMayBeAtDifferentSteps) {
  const auto times = flow_times(5);
  const auto x = at::randn({5, 3, 2}, at::kDouble), velocity = at::randn({5, 3, 2}, at::kDouble);
  const auto index = at::tensor({4, 0, 2, 2, 1}, at::kLong);
  const auto rows = flow_row_weights(FlowMethod::sde, times, 0.7, index, x);
  const auto mean = flow_step_mean(x, velocity, rows);
  for (std::int64_t row = 0; row < 5; ++row) {
    const auto step = index[row].item<std::int64_t>();
    const auto weights = flow_weights(FlowMethod::sde, times, step, 0.7);
    testing::expect_near(mean[row],
                         flow_step_mean(x[row], velocity[row], times[static_cast<std::size_t>(step)], weights), 1e-12,
                         "mean");
    EXPECT_DOUBLE_EQ(rows.std[row].item<double>(), weights.std);
  }
}

/// The exact velocity for actions ~ N(m, c^2): E[noise - action | x_t = x], which is linear in x.
double linear_velocity(double x, double t, double m, double c) {
  const double variance = t * t + (1 - t) * (1 - t) * c * c, off = x - (1 - t) * m;
  return t / variance * off - (m + (1 - t) * c * c / variance * off);
}

// Flow-SDE has the moments of the ODE: steps are linear here, so mean and variance are carried through them exactly,
// without samples.
TEST(FlowStepTest, FlowSdeHasTheMarginalsOfTheOdeForALinearGaussianToy) {
  constexpr double kMean = 0.7, kStd = 0.4;
  const auto times = flow_times(2000);
  for (const auto method : {FlowMethod::ode, FlowMethod::sde}) {
    double mean = 0, variance = 1;
    for (std::size_t i = 0; i + 1 < times.size(); ++i) {
      const double t = times[i];
      const auto weights = flow_weights(method, times, static_cast<std::int64_t>(i), 0.5);
      const auto x = at::tensor({0.0, 1.0}, at::kDouble);
      const auto velocity =
          at::tensor({linear_velocity(0, t, kMean, kStd), linear_velocity(1, t, kMean, kStd)}, at::kDouble);
      const auto next = flow_step_mean(x, velocity, t, weights);
      const double offset = next[0].item<double>(), slope = next[1].item<double>() - offset;
      mean = offset + slope * mean;
      variance = slope * slope * variance + weights.std * weights.std;
      if (t > 0.8 || i % 100 != 0) continue;
      // the first step of Flow-SDE is coarse whatever their number (sigma grows without bound at t = 1); later steps
      // forget it
      const double wanted = times[i + 1] * times[i + 1] + (1 - times[i + 1]) * (1 - times[i + 1]) * kStd * kStd;
      EXPECT_NEAR(mean, (1 - times[i + 1]) * kMean, 0.01) << t;
      EXPECT_NEAR(variance / wanted, 1, 0.02) << t;
    }
    EXPECT_NEAR(mean, kMean, 0.003);
    EXPECT_NEAR(variance, kStd * kStd, 0.003);
  }
}

}  // namespace
}  // namespace troupe::model
