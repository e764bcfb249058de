#include "workers/stream/balanced_assignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace troupe::workers {
namespace {

TEST(BalancedAssignmentTest, SharesDifferByOneAtMostAndLittleMoves) {
  BalancedAssignment deal;
  for (const char* owner : {"a", "b", "c"}) deal.add(owner);
  std::map<std::int64_t, std::string> before;
  for (std::int64_t thing = 0; thing < 10; ++thing) before[thing] = *deal.deal(thing);
  deal.add("d");
  std::map<std::string, int> shares;
  int moved = 0;
  for (std::int64_t thing = 0; thing < 10; ++thing) {
    const std::string owner = *deal.deal(thing);
    ++shares[owner];
    moved += owner != before[thing];
  }
  EXPECT_EQ(moved, 2);
  for (const auto& [owner, share] : shares) EXPECT_TRUE(share == 2 || share == 3) << owner;
  deal.remove("a");
  for (std::int64_t thing = 0; thing < 10; ++thing) EXPECT_NE(*deal.deal(thing), "a");
}

TEST(BalancedAssignmentTest, NothingMovesWhileOwnersStay) {
  for (const std::int64_t things : {4, 5, 8}) {
    for (int owners = 1; owners <= 6; ++owners) {
      BalancedAssignment deal;
      for (int i = 0; i < owners; ++i) deal.add(std::string(1, static_cast<char>('a' + i)));
      const auto deal_all = [&] {
        std::vector<std::string> dealt;
        for (std::int64_t thing = 0; thing < things; ++thing) {
          dealt.push_back(*deal.deal(thing, static_cast<double>(thing) / static_cast<double>(things)));
        }
        return dealt;
      };
      const auto first = deal_all();
      EXPECT_EQ(deal_all(), first) << things << " over " << owners;
      EXPECT_EQ(deal_all(), first) << things << " over " << owners;
    }
  }
}

TEST(BalancedAssignmentTest, DealersThatHaveOneThingEachSpreadOverTheirOwners) {
  for (std::int64_t thing = 0; thing < 4; ++thing) {
    BalancedAssignment deal;
    deal.add("a");
    EXPECT_EQ(*deal.deal(thing, static_cast<double>(thing) / 4), "a");
    for (const char* owner : {"b", "c", "d"}) deal.add(owner);
    const std::string owner = *deal.deal(thing, static_cast<double>(thing) / 4);
    EXPECT_EQ(owner, std::string(1, static_cast<char>('a' + thing)));
    EXPECT_EQ(*deal.deal(thing, static_cast<double>(thing) / 4), owner) << "and stays";
  }
}

}  // namespace
}  // namespace troupe::workers
