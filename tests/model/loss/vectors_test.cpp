#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "model/loss/advantage_norm.h"
#include "model/loss/aggregation.h"
#include "model/loss/dppo_loss.h"
#include "model/loss/gae.h"
#include "model/loss/grpo.h"
#include "model/loss/kl_penalty.h"
#include "model/loss/ppo_loss.h"
#include "model/loss/sac_loss.h"
#include "model/loss/vtrace.h"
#include "tests/model/loss/doubles.h"
#include "tests/support/tensor_checks.h"

// Worked examples of advantages, losses and targets, computed by hand in f64 and met to 1e-5; they are numbered.

namespace troupe::model {
namespace {

constexpr double kTolerance = 1e-5;

/// One environment: [S] -> [S,1].
at::Tensor column(const std::vector<double>& x) { return f64(x).unsqueeze(1); }
at::Tensor scalar(double x) { return at::full({1, 1, 1}, x, at::TensorOptions().dtype(at::kDouble)); }

void expect_column(const at::Tensor& got, const std::vector<double>& want, const char* what) {
  testing::expect_near(got, column(want), kTolerance, what);
}

const std::vector<double> kRewards = {0, 1, 0, 2}, kValues = {.5, .4, .3, .2, .1}, kDones = {0, 0, 1, 0, 0};

TEST(RlVectorsTest, GaeOfVectorOne) {
  const auto got = gae(column(kRewards), column(kValues), column(kDones), .99, .95);
  expect_column(got.advantages, {.4603, .6, 1.68401, 1.899}, "advantages");
  expect_column(got.returns, {.9603, 1.0, 1.98401, 2.099}, "returns");
  expect_column(normalise(got.advantages, advantage_moments(got.advantages, {})),
                {-.952143, -.762266, .711099, 1.00331}, "normalised");
}

TEST(RlVectorsTest, BootstrappedGaeOfVectorTwo) {
  const auto rewards = column(kRewards).unsqueeze(2);
  const auto truncated = column({0, 1, 0, 0}).unsqueeze(2), none = at::zeros_like(truncated);
  const auto final_values = at::full_like(truncated, .6);
  const auto adjusted = add_bootstrap(rewards, none, truncated, final_values, .99, Bootstrap::standard).squeeze(2);
  expect_column(gae(adjusted, column(kValues), column(kDones), .99, .95).advantages, {1.018957, 1.194, 1.68401, 1.899},
                "advantages");
}

TEST(RlVectorsTest, GroupRelativeAdvantagesOfVectorThree) {
  testing::expect_near(group_relative(f64({1, 0, 0, 1}), 4), f64({.866024, -.866024, -.866024, .866024}), kTolerance,
                       "four");
  const double rest = -.353553;
  testing::expect_near(group_relative(f64({5, 0, 0, 0, 0, 0, 0, 0}), 8),
                       f64({2.474872, rest, rest, rest, rest, rest, rest, rest}), kTolerance, "eight");
  testing::expect_near(group_relative(f64({3, 3, 3, 3}), 4), f64({0, 0, 0, 0}), kTolerance, "all equal");
  testing::expect_near(first_episode_scores(column({0, 0, 1, 0, 1}), column({0, 0, 0, 1, 0, 1})), f64({1}), kTolerance,
                       "score");
}

TEST(RlVectorsTest, ClippedLossesOfVectorFour) {
  const auto entries = [](double adv, double logp, double old_logp, double dual) {
    return ppo_entries(scalar(logp), scalar(old_logp), scalar(adv), at::ones({1, 1, 1}),
                       {.low = .2, .high = .28, .dual = dual});
  };
  const auto loss = [&entries](double adv, double logp, double old_logp, double dual = 3) {
    return entries(adv, logp, old_logp, dual).loss.item<double>();
  };
  EXPECT_NEAR(entries(1.5, -1.0, -1.4, 3).ratio.item<double>(), 1.491825, kTolerance);
  EXPECT_NEAR(loss(1.5, -1.0, -1.4), -1.92, kTolerance);
  EXPECT_NEAR(loss(-1.5, -1.0, -1.4), 2.237737, kTolerance);
  EXPECT_NEAR(entries(-1.5, .3, -1.2, 3).ratio.item<double>(), 4.481689, kTolerance);
  EXPECT_NEAR(loss(-1.5, .3, -1.2), 4.5, kTolerance);
  EXPECT_NEAR(loss(-1.5, .3, -1.2, 0), 6.722533, kTolerance);
  EXPECT_NEAR(loss(1.5, -1.6, -1.2), -1.00548, kTolerance);
}

TEST(RlVectorsTest, ValueLossesOfVectorFive) {
  const ValueLossOptions options{.clip = .2, .huber_delta = 10};
  EXPECT_NEAR(value_entries(scalar(1.2), scalar(.8), scalar(2), options).item<double>(), .5, kTolerance);
  EXPECT_NEAR(huber(scalar(12), 10).item<double>(), 70, kTolerance);
}

TEST(RlVectorsTest, DecoupledLossOfVectorSix) {
  const auto logp = scalar(-.7), behaviour = scalar(-1);
  const auto proximal = proximal_logp(logp, behaviour, at::full({1, 1, 1}, 7), at::full({}, 10));
  EXPECT_NEAR(proximal.item<double>(), -.8, kTolerance);
  const auto d = decoupled_entries(logp, behaviour, proximal, scalar(1), at::ones({1, 1, 1}), {.low = .2, .high = .2},
                                   std::nullopt);
  EXPECT_NEAR(d.ppo.ratio.item<double>(), 1.105171, kTolerance);
  EXPECT_NEAR(d.weight.item<double>(), 1.221403, kTolerance);
  EXPECT_NEAR(d.ppo.loss.item<double>(), -1.349859, kTolerance);
}

TEST(RlVectorsTest, SoftTargetOfVectorTen) {
  const auto next = aggregate_critics(f64({3, 2.5}).unsqueeze(0), CriticAggregation::min, {});
  const auto target = sac_target(column({1}), column({.8}), next, column({-1.2}), at::full({}, .01), true);
  EXPECT_NEAR(target.item<double>(), 3.0096, kTolerance);
}

TEST(RlVectorsTest, VtraceOfVectorEleven) {
  const auto log_ratio = column({1.5, .8, .5}).log();
  const auto got = vtrace(column({1, 0, 2}), column({.5, .6, .7, .4}), column({0, 0, 0, 1}), log_ratio, {.gamma = .99});
  expect_column(got.values, {2.177308, 1.1892, 1.35}, "values");
  expect_column(got.advantages, {1.677308, .5892, .65}, "advantages");
}

TEST(RlVectorsTest, DenoisingSchedulesOfVectorTwelve) {
  testing::expect_near(dppo_discounts(4, .99), f64({.970299, .9801, .99, 1}), kTolerance, "discounts");
  testing::expect_near(dppo_clips(4, {}), f64({.001, .00181, .004013, .01}), kTolerance, "clips");
  EXPECT_NEAR(kl_penalty(scalar(.2), scalar(0), KlEstimator::k3).item<double>(), .018731, kTolerance);
}

TEST(RlVectorsTest, AggregationOfVectorThirteen) {
  // rows are (step, environment), as samples are flattened
  const auto mask = at::tensor({1, 1, 1, 1, 0, 1, 0, 1}).reshape({8, 1}).to(at::kBool);
  const auto steps = column({2, 4, 2, 4, 2, 4, 2, 4});
  const auto loss = [&](Aggregation how, const at::Tensor& x) {
    return weighted_sum(x.reshape({8, 1, 1}), make_cell_weights(mask, how, steps, 4, {}).loss).item<double>();
  };
  const auto ones = at::ones({8}, at::kDouble), two_and_one = f64({2, 1, 2, 1, 2, 1, 2, 1});
  EXPECT_NEAR(loss(Aggregation::trajectory, ones), 1.0, kTolerance);
  EXPECT_NEAR(loss(Aggregation::mean, ones), 1.0, kTolerance);
  EXPECT_NEAR(loss(Aggregation::trajectory, two_and_one), 1.5, kTolerance);
  EXPECT_NEAR(loss(Aggregation::mean, two_and_one), 1.333333, kTolerance);
}

}  // namespace
}  // namespace troupe::model
