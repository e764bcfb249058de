#include "configs/placement_text.h"

#include <gtest/gtest.h>

namespace troupe::configs {
namespace {

TEST(PlacementTextTest, AcceptsTheGrammarOfRlinf) {
  for (const char* good : {"all", "0", "0-7", "0:0-31", "0-1:0,2-3:1", "0-3:0-7", "0-7:0-3", "0,2,4", "all:0-3",
                           "0-1,4-5:2-3", " 0 - 3 "}) {
    EXPECT_EQ(check_placement_text(good), std::nullopt) << good << ": " << check_placement_text(good).value_or("");
  }
}

TEST(PlacementTextTest, OneCountOfASegmentDividesTheOther) {
  EXPECT_EQ(check_placement_text("0-2:0-7"),
            "segment '0-2:0-7' maps 8 processes to 3 resources; one count must divide the other");
  EXPECT_EQ(check_placement_text("0-3:0-2"),
            "segment '0-3:0-2' maps 3 processes to 4 resources; one count must divide the other");
}

TEST(PlacementTextTest, ProcessRanksAreContiguousFromZero) {
  EXPECT_EQ(check_placement_text("0:1-2"), "segment '0:1-2': process ranks must go on at 0, each rank once");
  EXPECT_EQ(check_placement_text("0,1:2"), "segment '1:2': process ranks must go on at 1, each rank once");
  EXPECT_EQ(check_placement_text("0:0,1:0"), "segment '1:0': process ranks must go on at 1, each rank once");
}

TEST(PlacementTextTest, ResourceRanksAscend) {
  EXPECT_EQ(check_placement_text("3,1"), "segment '1': resource ranks must ascend; 3 was used before");
  EXPECT_EQ(check_placement_text("0-2,2-3"), "segment '2-3': resource ranks must ascend; 2 was used before");
}

TEST(PlacementTextTest, RefusesWhatIsNotARange) {
  EXPECT_EQ(check_placement_text("x"), "segment 'x': 'x' is not a resource rank, a range a-b or 'all'");
  EXPECT_EQ(check_placement_text("0:all"), "segment '0:all': 'all' is not a process rank or a range a-b");
  EXPECT_EQ(check_placement_text("0:1:2"), "segment '0:1:2' has more than one ':'");
  EXPECT_EQ(check_placement_text("all,1"), "'all' stands alone; it cannot be joined with other segments");
  for (const char* bad : {"", " ", ",", "0,", "3-1", "-1", "0-", "+1", "0:0-", "0-70000", "99999999999"}) {
    EXPECT_NE(check_placement_text(bad), std::nullopt) << bad;
  }
}

TEST(PlacementTextTest, NodeRanksLieWithinTheCluster) {
  EXPECT_EQ(check_rank_list("0-1,3", 4), std::nullopt);
  EXPECT_EQ(check_rank_list("0-4", 4), "node rank 4 does not exist; cluster.num_nodes is 4");
  EXPECT_EQ(check_rank_list("1,0", 4), "node ranks must ascend; '0' comes after 1");
  EXPECT_EQ(check_rank_list("a", 4), "'a' is not a node rank or a range a-b");
}

}  // namespace
}  // namespace troupe::configs
