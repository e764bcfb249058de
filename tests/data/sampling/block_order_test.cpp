#include "data/sampling/block_order.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace troupe::data {
namespace {

const std::vector<Locality>& localities() {
  static const std::vector<Locality> kAll = {{1, 256}, {2, 2},   {2, 7},    {3, 64},  {8, 1},
                                             {8, 256}, {16, 40}, {64, 256}, {5000, 7}};
  return kAll;
}

TEST(BlockOrderTest, EveryEpochIsABijection) {
  std::vector<std::uint64_t> seen(3001, 0);
  std::uint64_t mark = 0;
  for (std::uint64_t size = 1; size <= 3000; size += size < 300 ? 1 : 37) {
    for (const Locality& locality : localities()) {
      const BlockOrder order(42, size % 3, size, locality);
      ++mark;
      for (std::uint64_t p = 0; p < size; ++p) {
        const std::uint64_t index = order(p);
        ASSERT_LT(index, size);
        ASSERT_NE(seen[index], mark) << "index " << index << " came twice: N " << size << " B " << locality.block
                                     << " Q " << locality.buffer;
        seen[index] = mark;
      }
    }
  }
}

TEST(BlockOrderTest, ABlockLiesWithinOneWindow) {
  for (const Locality& locality : localities()) {
    const std::uint64_t size = 2999, block = locality.block;
    const BlockOrder order(7, 1, size, locality);
    std::map<std::uint64_t, std::uint64_t> window_of;  // of every full block
    for (std::uint64_t p = 0; p < size; ++p) {
      const std::uint64_t index = order(p);
      if (index >= size / block * block) continue;
      const auto [it, first] = window_of.emplace(index / block, p / locality.window());
      ASSERT_EQ(it->second, p / locality.window()) << "B " << block << " Q " << locality.buffer << " index " << index;
    }
    EXPECT_LE(locality.window(), std::max(locality.buffer, block));
    EXPECT_EQ(window_of.size(), size / block);
  }
}

TEST(BlockOrderTest, TheTailBlockComesLast) {
  const Locality locality{8, 64};
  const std::uint64_t size = 64 * 10 + 5;
  const BlockOrder order(3, 0, size, locality);
  for (std::uint64_t p = 0; p < size; ++p) EXPECT_EQ(order(p) >= 640, p >= 640) << p;
}

TEST(BlockOrderTest, ABlockOfOneIsTheFrozenOrder) {
  for (std::uint64_t q = 0; q < 300; ++q) {
    const SampleDraw want = draw_sample(42, q, 97), got = draw_sample(42, q, 97, Locality{1, 16});
    EXPECT_EQ(got.index, want.index);
    EXPECT_EQ(got.epoch, want.epoch);
  }
}

TEST(BlockOrderTest, KnownValuesNeverMove) {
  const BlockOrder order(42, 1, 22, {4, 8});
  std::vector<std::uint64_t> got;
  for (std::uint64_t p = 0; p < 22; ++p) got.push_back(order(p));
  // Computed by a second implementation that writes the shuffled lists out.
  EXPECT_EQ(got,
            (std::vector<std::uint64_t>{3, 18, 16, 0, 1, 17, 2, 19, 13, 12, 15, 14, 8, 9, 10, 11, 6, 21, 20, 5, 7, 4}));
}

TEST(BlockOrderTest, WindowsAndEpochsAreOrderedDifferently) {
  const Locality locality{4, 64};
  std::vector<std::uint64_t> first, second, next_epoch;
  for (std::uint64_t p = 0; p < 64; ++p) {
    first.push_back(BlockOrder(42, 0, 4096, locality)(p));
    second.push_back(BlockOrder(42, 0, 4096, locality)(64 + p));
    next_epoch.push_back(BlockOrder(42, 1, 4096, locality)(p));
  }
  EXPECT_NE(first, second);
  EXPECT_NE(first, next_epoch);
  // Neighbours of a block do not come in a row: the window is mixed.
  int in_a_row = 0;
  for (std::size_t i = 1; i < 64; ++i) in_a_row += first[i] == first[i - 1] + 1 ? 1 : 0;
  EXPECT_LT(in_a_row, 8);
}

TEST(BlockOrderTest, ABlocksSamplesAreKnownFromAnyOfThem) {
  const Locality locality{8, 256};
  EXPECT_EQ(block_of(0, 21, locality).first, 0u);
  EXPECT_EQ(block_of(15, 21, locality).first, 8u);
  EXPECT_EQ(block_of(15, 21, locality).last, 16u);
  EXPECT_EQ(block_of(20, 21, locality).last, 21u) << "the tail is shorter";
}

TEST(BlockOrderTest, IsUsableInConstantExpressions) {
  static_assert(draw_sample(42, 0, 10, Locality{1, 4}).index == 4);
  SUCCEED();
}

}  // namespace
}  // namespace troupe::data
