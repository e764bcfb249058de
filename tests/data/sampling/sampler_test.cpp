#include "data/sampling/sampler.h"

#include <gtest/gtest.h>

#include <vector>

namespace troupe::data {
namespace {

std::vector<std::uint64_t> epoch_order(std::uint64_t seed, std::uint64_t epoch, std::uint64_t size,
                                       std::uint64_t count) {
  std::vector<std::uint64_t> out;
  const KeyedBijection map(seed, epoch, size);
  for (std::uint64_t p = 0; p < count; ++p) out.push_back(map(p));
  return out;
}

class SamplerSizeTest : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(SamplerSizeTest, EveryEpochIsABijection) {
  const std::uint64_t size = GetParam();
  for (std::uint64_t epoch : {0, 1, 7}) {
    std::vector<int> seen(size, 0);
    for (std::uint64_t index : epoch_order(42, epoch, size, size)) {
      ASSERT_LT(index, size);
      ASSERT_EQ(++seen[index], 1) << "index " << index << " came twice";
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes, SamplerSizeTest, ::testing::Values(1, 2, 3, 4, 5, 16, 17, 1000, 4096, 4097, 65537));

TEST(SamplerTest, KnownValuesNeverMove) {
  // Computed by a second implementation of the permutation (data/sampling/sampler.h).
  EXPECT_EQ(epoch_order(42, 0, 10, 10), (std::vector<std::uint64_t>{4, 8, 1, 7, 9, 2, 0, 6, 5, 3}));
  EXPECT_EQ(epoch_order(42, 1, 10, 10), (std::vector<std::uint64_t>{9, 4, 3, 2, 5, 1, 7, 0, 8, 6}));
  EXPECT_EQ(epoch_order(7, 0, 1000, 10), (std::vector<std::uint64_t>{158, 923, 283, 402, 129, 284, 980, 619, 257, 44}));
  EXPECT_EQ(epoch_order(42, 3, 4097, 10),
            (std::vector<std::uint64_t>{1270, 3681, 1444, 571, 195, 3050, 65, 1519, 743, 3024}));
  EXPECT_EQ(epoch_order(std::uint64_t{1} << 53, std::uint64_t{1} << 40, 15'500'000, 5),
            (std::vector<std::uint64_t>{10425306, 8002552, 9458876, 9870822, 7526131}));
}

TEST(SamplerTest, EpochsJoinWithoutPartialBatches) {
  std::vector<int> seen(10, 0);
  for (std::uint64_t q = 0; q < 30; ++q) {
    const SampleDraw draw = draw_sample(42, q, 10);
    EXPECT_EQ(draw.epoch, q / 10);
    ++seen[draw.index];
  }
  EXPECT_EQ(seen, std::vector<int>(10, 3));
  EXPECT_EQ(draw_sample(42, 10, 10).index, 9u);
}

TEST(SamplerTest, IsUsableInConstantExpressions) {
  static_assert(draw_sample(42, 0, 10).index == 4);
  static_assert(draw_sample(42, 12, 10).index == 3);
  SUCCEED();
}

TEST(SamplerTest, SeedsGiveDifferentOrders) { EXPECT_NE(epoch_order(1, 0, 1000, 50), epoch_order(2, 0, 1000, 50)); }

}  // namespace
}  // namespace troupe::data
