#include "data/video/decode_plan.h"

#include <gtest/gtest.h>

#include <ostream>

namespace troupe::data {

void PrintTo(const DecodeRun& r, std::ostream* out) { *out << "[" << r.first << ", " << r.last << "]"; }

namespace {

/// A table from the presentation index of each sample in decode order; the samples listed in `keys` (decode order)
/// are key samples.
PacketTable table_of(const std::vector<std::int32_t>& ranks, const std::vector<std::size_t>& keys) {
  PacketTable table;
  table.samples.resize(ranks.size());
  table.decode_of_rank.resize(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    table.samples[i].rank = ranks[i];
    table.decode_of_rank[static_cast<std::size_t>(ranks[i])] = static_cast<std::int32_t>(i);
  }
  for (const std::size_t k : keys) table.samples[k].key = true;
  return table;
}

PacketTable in_order(std::int32_t count, std::int32_t gop) {
  std::vector<std::int32_t> ranks;
  std::vector<std::size_t> keys;
  for (std::int32_t i = 0; i < count; ++i) {
    ranks.push_back(i);
    if (i % gop == 0) keys.push_back(static_cast<std::size_t>(i));
  }
  return table_of(ranks, keys);
}

using Runs = std::vector<DecodeRun>;

TEST(DecodePlanTest, AWindowInsideOneGroupIsOneRunFromItsKey) {
  EXPECT_EQ(plan_runs(in_order(100, 50), std::vector<std::int64_t>{60, 63, 66}), (Runs{{50, 66}}));
}

TEST(DecodePlanTest, AWindowAcrossAKeyIsOneRunWhenTheGroupsTouch) {
  EXPECT_EQ(plan_runs(in_order(100, 50), std::vector<std::int64_t>{48, 49, 50}), (Runs{{0, 50}}));
}

TEST(DecodePlanTest, AJumpToALaterKeySkipsWhatLiesBetween) {
  EXPECT_EQ(plan_runs(in_order(100, 10), std::vector<std::int64_t>{3, 47}), (Runs{{0, 3}, {40, 47}}));
}

TEST(DecodePlanTest, GroupsOfTwoFeedOnlyKeysAndTargets) {
  EXPECT_EQ(plan_runs(in_order(20, 2), std::vector<std::int64_t>{0, 3, 6, 9}), (Runs{{0, 0}, {2, 3}, {6, 6}, {8, 9}}));
}

TEST(DecodePlanTest, RepeatedFramesAreFedOnce) {
  EXPECT_EQ(plan_runs(in_order(20, 10), std::vector<std::int64_t>{4, 4, 4}), (Runs{{0, 4}}));
}

TEST(DecodePlanTest, AReorderedFrameIsReachedThroughWhatItRefersTo) {
  // decode order I P B B, shown as I B B P
  const PacketTable table = table_of({0, 3, 1, 2, 4, 7, 5, 6}, {0, 4});
  EXPECT_EQ(plan_runs(table, std::vector<std::int64_t>{1}), (Runs{{0, 2}}));
  EXPECT_EQ(plan_runs(table, std::vector<std::int64_t>{3, 5}), (Runs{{0, 1}, {4, 6}}));
}

TEST(DecodePlanTest, AFrameThatLeadsAnOpenGroupNeedsTheKeyBefore) {
  // sample 3 is a key shown after its leading frames 2 and 3
  const PacketTable table = table_of({0, 1, 4, 2, 3, 5}, {0, 2});
  EXPECT_EQ(governing_key(table, 2), 0);
  EXPECT_EQ(governing_key(table, 5), 2);
  EXPECT_EQ(plan_runs(table, std::vector<std::int64_t>{3}), (Runs{{0, 4}}));
  EXPECT_EQ(plan_runs(table, std::vector<std::int64_t>{4}), (Runs{{2, 2}}));
}

}  // namespace
}  // namespace troupe::data
