#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "model/loss/advantage_norm.h"
#include "model/loss/gae.h"
#include "model/loss/grpo.h"
#include "model/loss/rollout_layout.h"
#include "model/loss/vtrace.h"
#include "tests/model/loss/doubles.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

TEST(AdvantageTest, BootstrapGoesToTheStepThatEndedTheEpisode) {
  const auto rewards = at::zeros({1, 2, 3}, at::kDouble);
  const auto truncated = f64({0, 1, 1, 0, 0, 0}, {1, 2, 3}), terminated = at::zeros_like(truncated);
  const auto got = add_bootstrap(rewards, terminated, truncated, f64({10, 20}, {1, 2, 1}), .5, Bootstrap::standard);
  testing::expect_near(got, f64({0, 5, 0, 0, 0, 0}, {1, 2, 3}), 1e-12, "rewards");
}

TEST(AdvantageTest, ParityBootstrapsTheLastStepOfTheChunk) {
  const auto truncated = f64({0, 1, 0}, {1, 1, 3});
  const auto got = add_bootstrap(at::zeros({1, 1, 3}, at::kDouble), at::zeros_like(truncated), truncated,
                                 f64({10}, {1, 1, 1}), .5, Bootstrap::standard, true);
  testing::expect_near(got, f64({0, 0, 5}, {1, 1, 3}), 1e-12, "rewards");
}

TEST(AdvantageTest, ATruncationThatIsATerminationIsNotBootstrapped) {
  const auto both = f64({0, 1}, {1, 1, 2});
  const auto value = f64({10}, {1, 1, 1});
  const auto rewards = at::zeros({1, 1, 2}, at::kDouble);
  EXPECT_EQ(add_bootstrap(rewards, both, both, value, .5, Bootstrap::standard).sum().item<double>(), 0);
  EXPECT_EQ(add_bootstrap(rewards, both, both, value, .5, Bootstrap::always).sum().item<double>(), 5);
  EXPECT_EQ(add_bootstrap(rewards, both, both, value, .5, Bootstrap::never).sum().item<double>(), 0);
}

TEST(AdvantageTest, SemiMdpWithOneActionIsThePlainForm) {
  at::manual_seed(1);
  const auto rewards = random({5, 2, 1}), values = random({6, 2, 1});
  const auto dones = random({6, 2, 1}) > 1;
  const auto plain = rollout_gae(rewards, values, dones, {.gamma = .9, .per_action = false});
  const auto semi = rollout_gae(rewards, values, dones, {.gamma = .9, .per_action = false, .semi_mdp = true});
  const auto action = rollout_gae(rewards, values, dones, {.gamma = .9});
  testing::expect_near(semi.advantages, plain.advantages, 1e-12, "semi-MDP");
  testing::expect_near(action.advantages, plain.advantages, 1e-12, "action level");
}

TEST(AdvantageTest, ActionLevelValuesMustBeOnePerAction) {
  EXPECT_THROW(rollout_gae(at::zeros({2, 1, 3}), at::zeros({3, 1, 1}), at::zeros({3, 1, 3}), {}), c10::Error);
}

TEST(AdvantageTest, FewerThanTwoValidEntriesAreLeftAsTheyAre) {
  const auto x = f64({1, 2, 3}, {3});
  const auto one = at::tensor({1, 0, 0}).to(at::kBool);
  EXPECT_TRUE(at::equal(normalise(x, advantage_moments(x, one)), x));
  EXPECT_TRUE(at::equal(normalise(x, advantage_moments(x, at::zeros_like(one))), x));
}

TEST(AdvantageTest, ANumberThatIsNotFiniteLeavesTheOthersNormalised) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto x = f64({1, nan, 3}, {3});
  const auto normalised = normalise(x, advantage_moments(x, {}));
  EXPECT_NEAR(normalised[0].item<double>(), -std::sqrt(0.5), 1e-4);
  EXPECT_NEAR(normalised[2].item<double>(), std::sqrt(0.5), 1e-4);
}

TEST(AdvantageTest, EqualAdvantagesBecomeZeroAndStayFinite) {
  const auto x = at::full({4}, 1e6, at::kFloat);
  testing::expect_near(normalise(x, advantage_moments(x, {})), at::zeros({4}), 1e-6, "normalised");
}

TEST(AdvantageTest, MomentsOfRanksAddUpToThoseOfTheWhole) {
  at::manual_seed(2);
  const auto x = random({10});
  auto a = advantage_moments(x.narrow(0, 0, 3), {});
  const auto b = advantage_moments(x.narrow(0, 3, 7), {}), whole = advantage_moments(x, {});
  a.count += b.count;
  a.sum += b.sum;
  a.sum_of_squares += b.sum_of_squares;
  EXPECT_NEAR(a.mean(), whole.mean(), 1e-12);
  EXPECT_NEAR(a.unbiased_variance(), x.var().item<double>(), 1e-12);
}

TEST(AdvantageTest, GroupsOfOneHaveNoAdvantage) {
  testing::expect_near(group_relative(f64({3, 5}, {2}), 1), at::zeros({2}, at::kDouble), 0, "advantages");
}

TEST(AdvantageTest, EnvironmentsThatDoNotFillGroupsAreRefused) {
  EXPECT_THROW(group_relative(at::zeros({5}), 2), c10::Error);
}

TEST(AdvantageTest, GroupFilterBoundsAreInclusive) {
  const auto rewards = f64({1, 0, 1, 1, 0, 0}, {1, 6, 1});
  const auto kept = kept_groups(rewards, {}, 2, .5, 1);
  EXPECT_TRUE(at::equal(kept, at::tensor({1, 1, 1, 1, 0, 0}).to(at::kBool)));
}

TEST(AdvantageTest, StepsSurviveFlatteningAndBack) {
  const auto x = at::arange(24).reshape({2, 3, 4});
  EXPECT_TRUE(at::equal(unflatten_steps(flatten_steps(x), 4), x));
  EXPECT_EQ(flatten_steps(x)[1][0].item<std::int64_t>(), 1);
}

TEST(AdvantageTest, OnPolicyVtraceIsGaeOfLambda) {
  at::manual_seed(4);
  const auto rewards = random({6, 3}), values = random({7, 3});
  const auto dones = (random({7, 3}) > 1).to(at::kDouble);
  const auto got = vtrace(rewards, values, dones, at::zeros_like(rewards), {.gamma = .9, .lambda = .8});
  testing::expect_near(got.values, gae(rewards, values, dones, .9, .8).returns, 1e-12, "targets");
}

}  // namespace
}  // namespace troupe::model
