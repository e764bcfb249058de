#include "placement/placement_string.h"

#include <gmock/gmock.h>

namespace troupe::placement {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kKey = "cluster.component_placement.learner";

ProcessMap parse(std::string_view text, std::int64_t resources) {
  return parse_placement(text, resources, kKey).value();
}

std::string error(std::string_view text, std::int64_t resources) {
  auto map = parse_placement(text, resources, kKey);
  EXPECT_FALSE(map) << text;
  if (map) return {};
  EXPECT_EQ(map.error().code(), Errc::invalid_argument);
  EXPECT_THAT(map.error().message(), HasSubstr(kKey));
  return map.error().message();
}

TEST(PlacementStringTest, AllGivesEveryResourceItsProcess) {
  EXPECT_THAT(parse("all", 3), ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
}
TEST(PlacementStringTest, BareNumberIsOneProcess) { EXPECT_THAT(parse("2", 3), ElementsAre(ElementsAre(2))); }
TEST(PlacementStringTest, ProcessesShareOneResource) {
  EXPECT_THAT(parse("0:0-1", 1), ElementsAre(ElementsAre(0), ElementsAre(0)));
}
TEST(PlacementStringTest, MoreProcessesThanResourcesShareInOrder) {
  EXPECT_THAT(parse("0-1:0-3", 2), ElementsAre(ElementsAre(0), ElementsAre(0), ElementsAre(1), ElementsAre(1)));
}
TEST(PlacementStringTest, MoreResourcesThanProcessesAreDealtInRuns) {
  EXPECT_THAT(parse("0-3:0-1", 4), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
}
TEST(PlacementStringTest, OmittedProcessesContinueTheLastRank) {
  EXPECT_THAT(parse("0:0-1,1-2", 3), ElementsAre(ElementsAre(0), ElementsAre(0), ElementsAre(1), ElementsAre(2)));
}
TEST(PlacementStringTest, SegmentsMayGiveRanksInAnyOrder) {
  EXPECT_THAT(parse("0:1,1:0", 2), ElementsAre(ElementsAre(1), ElementsAre(0)));
}
TEST(PlacementStringTest, AllTakesProcessRanks) {
  EXPECT_THAT(parse("all:0-3", 2), ElementsAre(ElementsAre(0), ElementsAre(0), ElementsAre(1), ElementsAre(1)));
}
TEST(PlacementStringTest, BlanksAreIgnored) { EXPECT_THAT(parse(" 0 - 1 : 0 - 1 , 2 ", 3).size(), 3u); }

TEST(PlacementStringTest, CountsThatDoNotDivideAreNamed) {
  EXPECT_EQ(error("0-2:0-7", 3),
            std::string(kKey) + ": segment '0-2:0-7' maps 8 processes to 3 resources; one count must divide the other");
}
TEST(PlacementStringTest, ResourceBeyondTheGroupIsNamed) {
  EXPECT_THAT(error("0-8", 8), HasSubstr("resource 8; the node group has 8 (0-7)"));
}
TEST(PlacementStringTest, RepeatedResourceIsRefused) {
  EXPECT_THAT(error("0-1,1", 4), HasSubstr("resource 1 again or out of order"));
}
TEST(PlacementStringTest, DescendingResourceIsRefused) {
  EXPECT_THAT(error("2,0", 4), HasSubstr("resources must ascend"));
}
TEST(PlacementStringTest, MissingProcessIsRefused) { EXPECT_THAT(error("0:1", 1), HasSubstr("process 0 is missing")); }
TEST(PlacementStringTest, GapBetweenSegmentsIsRefused) {
  EXPECT_THAT(error("0:0,1:2", 2), HasSubstr("process 1 is missing"));
}
TEST(PlacementStringTest, RepeatedProcessIsRefused) {
  EXPECT_THAT(error("0:0,1:0", 2), HasSubstr("gives process 0 a second time"));
}
TEST(PlacementStringTest, AllAsProcessIsRefused) { EXPECT_THAT(error("0-1:all", 2), HasSubstr("'0-1:0-1'")); }
TEST(PlacementStringTest, BackwardRangeSuggestsItsReverse) { EXPECT_THAT(error("3-1", 4), HasSubstr("write 1-3")); }
TEST(PlacementStringTest, EmptySegmentIsRefused) { EXPECT_THAT(error("0,,1", 2), HasSubstr("empty segment")); }
TEST(PlacementStringTest, EmptyTextIsRefused) { EXPECT_THAT(error("", 2), HasSubstr("empty segment")); }
TEST(PlacementStringTest, WordsAreRefused) { EXPECT_THAT(error("gpu0", 2), HasSubstr("'gpu0' is not a number")); }
TEST(PlacementStringTest, NegativeNumbersAreRefused) { EXPECT_THAT(error("-1", 2), HasSubstr("is not a number")); }
TEST(PlacementStringTest, TwoColonsAreRefused) { EXPECT_THAT(error("0:0:0", 2), HasSubstr("2 colons")); }
TEST(PlacementStringTest, HugeNumbersAreRefused) { EXPECT_THAT(error("99999999999", 2), HasSubstr("2147483647")); }
TEST(PlacementStringTest, HugeRangesAreRefused) { EXPECT_THAT(error("0:0-70000", 1), HasSubstr("at most 65536")); }
TEST(PlacementStringTest, LongTextIsRefused) {
  EXPECT_THAT(error(std::string(5000, '0'), 1), HasSubstr("at most 4096"));
}

TEST(PlacementStringTest, RanksAreNumbersRangesAndLists) {
  EXPECT_THAT(*parse_ranks("0,2-3", "k"), ElementsAre(0, 2, 3));
  EXPECT_FALSE(parse_ranks("2,1", "k"));
  EXPECT_FALSE(parse_ranks("a", "k"));
}

}  // namespace
}  // namespace troupe::placement
