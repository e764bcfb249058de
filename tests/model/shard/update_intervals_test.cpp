// Which parameters decay and at what rate: intervals of a unit's flat buffer, and what the engine makes of them.
#include "model/shard/update_intervals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/shard/training_harness.h"

namespace troupe::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

FlatLayout three_parameters() {
  return make_flat_layout(std::vector<ParamSpec>{{.name = "a.weight", .shape = {10, 10}, .init = {}},
                                                 {.name = "a.bias", .shape = {10}, .init = {}},
                                                 {.name = "b.weight", .shape = {64}, .init = {}}});
}

TEST(UpdateIntervalsTest, WithoutRulesAUnitIsOneInterval) {
  EXPECT_THAT(update_intervals(three_parameters(), 1024, {}), ElementsAre(UpdateInterval{0, 1024, true, 1.0}));
  EXPECT_THAT(update_intervals({}, 1024, {.no_decay = {"*"}}), ElementsAre(UpdateInterval{0, 1024, true, 1.0}));
}

TEST(UpdateIntervalsTest, RulesCutAtEntriesAndTheFirstRateCounts) {
  const UpdateRules rules{.no_decay = {"*.bias"}, .rates = {{"b.*", 0.5}, {"*.weight", 2.0}}};
  EXPECT_THAT(update_intervals(three_parameters(), 1024, rules),
              ElementsAre(UpdateInterval{0, 128, true, 2.0}, UpdateInterval{128, 192, false, 1.0},
                          UpdateInterval{192, 1024, true, 0.5}));
}

TEST(UpdateIntervalsTest, NeighboursAlikeAreOneInterval) {
  EXPECT_THAT(update_intervals(three_parameters(), 1024, {.no_decay = {"a.*"}}),
              ElementsAre(UpdateInterval{0, 192, false, 1.0}, UpdateInterval{192, 1024, true, 1.0}));
}

TEST(UpdateRulesTest, AFactorOnEverythingIsThatLearningRate) {
  TrainingRun twice, doubled;
  doubled.lr = 2 * twice.lr;
  twice.options.update_rules.rates = {{"*", 2.0}};
  EXPECT_EQ(train(twice).state, train(doubled).state);
}

TEST(UpdateRulesTest, NothingDecaysWhereAllAreExcepted) {
  TrainingRun excepted, without;
  excepted.options.update_rules.no_decay = {"*"};
  without.options.adamw.weight_decay = 0;
  EXPECT_EQ(train(excepted).state, train(without).state);
}

TEST(UpdateRulesTest, RanksUpdateTheirPartsOfAParameterAlike) {
  TrainingRun one;
  one.micro_batches = 2;
  one.options.update_rules = {.no_decay = {"*weight"}, .rates = {{"*bias", 0.25}, {"*", 3.0}}};
  TrainingRun two = one;
  two.world = 2, two.micro_batches = 1;
  EXPECT_EQ(train(one).state, train(two).state);
  TrainingRun plain = one;
  plain.options.update_rules = {};
  EXPECT_FALSE(train(one).state == train(plain).state);
}

TEST(UpdateRulesTest, APatternThatFitsNothingIsAnError) {
  const std::vector<UnitSpec> units{
      {.name = "u", .layout_class = "u", .params = {{.name = "a.weight", .shape = {2}, .init = {}}}},
      {.name = "f",
       .layout_class = "f",
       .params = {{.name = "frozen.bias", .shape = {2}, .init = {}}},
       .trainable = false}};
  EXPECT_TRUE(check_update_rules(units, {.no_decay = {"a.w?ight"}, .rates = {{"*", 2}}}));
  const auto frozen = check_update_rules(units, {.no_decay = {"*.bias"}});
  ASSERT_FALSE(frozen);
  EXPECT_THAT(frozen.error().message(), HasSubstr("optimizer.no_decay: '*.bias' fits no parameter"));
  EXPECT_THAT(frozen.error().message(), HasSubstr("one of them is a.weight"));
  const auto rate = check_update_rules(units, {.rates = {{"b.*", 2}}});
  ASSERT_FALSE(rate);
  EXPECT_THAT(rate.error().message(), HasSubstr("optimizer.rates"));
}

}  // namespace
}  // namespace troupe::model
