// Which reward models there are, and what they refuse.
#include "env/reward/reward_registry.h"

#include <gmock/gmock.h>

#include "tests/env/solo_env.h"

namespace troupe::testing {
namespace {

using ::testing::HasSubstr;

/// The error of a model for an environment.
std::string refused(const std::string& env, const RewardModelConfig& config) {
  const auto made = make_reward_model(config, factory_of(env)->spec(), 1);
  return made ? "none" : made.error().message();
}

TEST(RewardRegistryTest, AnUnknownNameIsRefusedWithTheNearest) {
  EXPECT_EQ(refused("reach-v1", {.name = "goal_distanc", .options = {}}),
            "env.reward.model.name: there is no reward model 'goal_distanc', did you mean 'goal_distance'?; there are "
            "goal_distance, success");
}

TEST(RewardRegistryTest, OptionsAreCheckedAgainstTheModelAndTheObservations) {
  EXPECT_THAT(refused("reach-v1", {.name = "success", .options = {{"first", "1"}}}),
              HasSubstr("env.reward.model.options of success: it has no options; remove 'first'"));
  EXPECT_THAT(refused("reach-v1", {.name = "goal_distance", .options = {{"frist", "1"}}}),
              HasSubstr("no option 'frist', did you mean 'first'?"));
  EXPECT_THAT(refused("reach-v1", {.name = "goal_distance", .options = {{"first", "2"}}}),
              HasSubstr("'count' is missing: the vector from goal to thing is numbers first to first + count - 1"));
  EXPECT_THAT(refused("reach-v1", {.name = "goal_distance", .options = {{"first", "two"}, {"count", "2"}}}),
              HasSubstr("first is 'two'; wanted a whole number"));
  EXPECT_THAT(refused("reach-v1", {.name = "goal_distance", .options = {{"first", "3"}, {"count", "2"}}}),
              HasSubstr("first is 3 and count 2; field 'state' of reach-v1 has 4 numbers"));
  EXPECT_THAT(
      refused("reach-v1", {.name = "goal_distance", .options = {{"field", "goal"}, {"first", "0"}, {"count", "2"}}}),
      HasSubstr("field is 'goal'; reach-v1 observes numbers in: state"));
}

TEST(RewardRegistryTest, SuccessWantsAnEnvironmentThatKnowsIt) {
  EXPECT_THAT(refused("CartPole-v1", {.name = "success", .options = {}}),
              HasSubstr("CartPole-v1 does not say when its task is solved"));
}

/// goal_distance of the last two of four f32 numbers.
double goal_reward(double gamma, std::vector<float> before, std::vector<float> after, bool is_terminated) {
  const RewardModelConfig config{.name = "goal_distance", .options = {{"first", "2"}, {"count", "2"}}};
  const auto model = make_reward_model(config, factory_of("reach-v1")->spec(), gamma).value();
  const std::byte* const from[] = {reinterpret_cast<const std::byte*>(before.data())};
  std::byte* const to[] = {reinterpret_cast<std::byte*>(after.data())};
  return model->reward({.observation = from, .action = {}, .next_observation = to, .is_terminated = is_terminated})
      .value();
}

TEST(GoalDistanceTest, PaysTheDiscountedDifferenceOfThePotential) {
  EXPECT_DOUBLE_EQ(goal_reward(1, {9, 9, 3, 4}, {9, 9, 0, 2}, false), 5 - 2);
  EXPECT_DOUBLE_EQ(goal_reward(0.5, {9, 9, 3, 4}, {9, 9, 0, 2}, false), 5 - 0.5 * 2);
  EXPECT_DOUBLE_EQ(goal_reward(0.5, {9, 9, 3, 4}, {9, 9, 0, 2}, true), 5) << "no potential behind a termination";
}

TEST(GoalDistanceTest, AnEpisodePaysTheDistanceAtItsStartWhateverItsWay) {
  const double gamma = 0.9;
  const double straight = goal_reward(gamma, {0, 0, 5, 0}, {0, 0, 2, 0}, false) +
                          gamma * goal_reward(gamma, {0, 0, 2, 0}, {0, 0, 0.1f, 0}, true);
  const double around = goal_reward(gamma, {0, 0, 5, 0}, {0, 0, 7, 3}, false) +
                        gamma * goal_reward(gamma, {0, 0, 7, 3}, {0, 0, 0, 0.1f}, true);
  EXPECT_NEAR(straight, 5, 1e-12);
  EXPECT_NEAR(around, 5, 1e-12);
}

TEST(GoalDistanceTest, AlgorithmsThatSumRewardsPayALongWayWhatTheyPayAShortOne) {
  AlgorithmConfig algorithm;
  EXPECT_EQ(reward_gamma(algorithm), algorithm.gamma);
  algorithm.name = Algorithm::grpo;
  const double gamma = reward_gamma(algorithm);
  // grpo compares plain sums of rewards: both episodes end at distance 2
  const double straight = goal_reward(gamma, {0, 0, 5, 0}, {0, 0, 2, 0}, false);
  const double around = goal_reward(gamma, {0, 0, 5, 0}, {0, 0, 7, 0}, false) +
                        goal_reward(gamma, {0, 0, 7, 0}, {0, 0, 6, 0}, false) +
                        goal_reward(gamma, {0, 0, 6, 0}, {0, 0, 0, 2}, false);
  EXPECT_NEAR(straight, 3, 1e-12);
  EXPECT_NEAR(around, 3, 1e-12);
}

TEST(RewardRulesTest, AModelOfDifferencesIsNotAskedAtTheEndAlone) {
  RewardConfig config;
  config.model = {.name = "goal_distance", .mode = "terminal", .options = {{"first", "2"}, {"count", "2"}}};
  const auto factory = factory_of("reach-v1");
  const EnvSpec& spec = factory->spec();
  EXPECT_THAT(make_reward_rules(config, {}, spec).error().message(),
              HasSubstr("env.reward.model.mode: is terminal; goal_distance pays how much nearer each step came"));
  config.model = {.name = "success", .mode = "terminal", .options = {}};
  EXPECT_TRUE(make_reward_rules(config, {}, spec));
}

}  // namespace
}  // namespace troupe::testing
