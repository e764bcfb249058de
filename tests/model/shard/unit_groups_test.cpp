#include "model/shard/unit_groups.h"

#include <gmock/gmock.h>

namespace troupe::model {
namespace {

using ::testing::ElementsAre;

UnitSpec unit(const std::string& name, const std::string& group, bool trainable = true) {
  return {.name = name, .layout_class = name, .params = {}, .trainable = trainable, .group = group};
}

const std::vector<UnitSpec> kFiveUnits = {unit("a", "actor"), unit("f", "frozen", false), unit("q1", "critic"),
                                          unit("t", "temperature"), unit("q2", "critic")};

TEST(UnitGroupsTest, GroupsAreThoseOfTrainedUnitsInOrderOfAppearance) {
  const UnitGroups groups(kFiveUnits, {}, {});
  EXPECT_THAT(groups.names(), ElementsAre("actor", "critic", "temperature"));
  EXPECT_THAT(groups.units_of(1), ElementsAre(2, 4));
  EXPECT_EQ(groups.group_of(1), UnitGroups::kNone);
  EXPECT_EQ(groups.find("frozen"), UnitGroups::kNone);
}

TEST(UnitGroupsTest, GroupsWithoutOptionsHaveTheDefaultsAndOneNorm) {
  const UnitGroups groups(kFiveUnits, {.adamw = {.beta1 = 0.5}, .clip_grad_norm = 1},
                          {{"critic", {.clip_grad_norm = 2}}});
  EXPECT_EQ(groups.adamw(0).beta1, 0.5);
  const std::size_t all[] = {0, 1, 2};
  const double squares[] = {9, 100, 16};
  EXPECT_THAT(groups.clip_factors(all, squares),
              ElementsAre(::testing::FloatNear(0.2f, 1e-6f), ::testing::FloatNear(0.2f, 1e-6f),
                          ::testing::FloatNear(0.2f, 1e-6f)));
}

TEST(UnitGroupsTest, AClipSetCountsOnlyGroupsThatAreUpdated) {
  const GroupOptions both{.clip_grad_norm = 1, .clip_with = "both"};
  const UnitGroups groups(kFiveUnits, {}, {{"actor", both}, {"critic", both}});
  const double squares[] = {9, 16, 1e6};
  const std::size_t together[] = {1, 0}, alone[] = {1};
  EXPECT_THAT(groups.clip_factors(together, squares),
              ElementsAre(::testing::FloatNear(0.2f, 1e-6f), ::testing::FloatNear(0.2f, 1e-6f), 1.0f));
  EXPECT_THAT(groups.clip_factors(alone, squares), ElementsAre(1.0f, ::testing::FloatNear(0.25f, 1e-6f), 1.0f));
}

TEST(UnitGroupsTest, OptionsOfAGroupThatNoUnitNamesAreRefused) {
  EXPECT_DEATH(UnitGroups(kFiveUnits, {}, {{"critics", {}}}), "critics");
}

TEST(UnitGroupsTest, ASetWithTwoLimitsIsRefused) {
  const GroupOptions one{.clip_grad_norm = 1, .clip_with = "x"}, two{.clip_grad_norm = 2, .clip_with = "x"};
  EXPECT_DEATH(UnitGroups(kFiveUnits, {}, {{"actor", one}, {"critic", two}}), "different limits");
}

}  // namespace
}  // namespace troupe::model
