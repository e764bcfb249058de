#include "comm/collective/rank_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace troupe::comm {
namespace {

TEST(RankSumTest, FloatsAreAddedInRankOrder) {
  // 1e8 + 1 is not a float: only the given order gives 0 + 1
  const std::vector<float> a(3000, 1e8f), b(3000, -1e8f), c(3000, 1.0f);
  const void* in_order[] = {a.data(), b.data(), c.data()};
  const void* other_order[] = {a.data(), c.data(), b.data()};
  std::vector<float> out(3000);
  sum_in_rank_order(DType::f32, out.data(), in_order, 3000);
  EXPECT_EQ(out, std::vector<float>(3000, 1.0f));
  sum_in_rank_order(DType::f32, out.data(), other_order, 3000);
  EXPECT_EQ(out, std::vector<float>(3000, 0.0f));
}

TEST(RankSumTest, TheOutputMayBeAnyOfTheInputs) {
  for (int alias = 0; alias < 3; ++alias) {
    std::vector<std::vector<float>> in = {std::vector<float>(5000, 0.1f), std::vector<float>(5000, 0.7f),
                                          std::vector<float>(5000, 1e6f)};
    const void* inputs[] = {in[0].data(), in[1].data(), in[2].data()};
    sum_in_rank_order(DType::f32, in[static_cast<std::size_t>(alias)].data(), inputs, 5000);
    EXPECT_EQ(in[static_cast<std::size_t>(alias)], std::vector<float>(5000, (0.1f + 0.7f) + 1e6f)) << "alias " << alias;
  }
}

TEST(RankSumTest, Bf16IsAddedInFloatAndRoundedOnce) {
  // in bf16 steps, 256 + 1 + 1 would stay 256
  const std::uint16_t big = to_bf16(256.0f), one = to_bf16(1.0f);
  const void* inputs[] = {&big, &one, &one};
  std::uint16_t out = 0;
  sum_in_rank_order(DType::bf16, &out, inputs, 1);
  EXPECT_EQ(from_bf16(out), 258.0f);
}

TEST(RankSumTest, Bf16RoundsToNearestEvenAndKeepsNan) {
  EXPECT_EQ(from_bf16(to_bf16(1.0f + 0x1p-8f)), 1.0f);                // tie, down to even
  EXPECT_EQ(from_bf16(to_bf16(1.0f + 3 * 0x1p-8f)), 1.0f + 0x1p-6f);  // tie, up to even
  EXPECT_EQ(from_bf16(to_bf16(1.0f + 0x1.8p-8f)), 1.0f + 0x1p-7f);    // above the tie
  EXPECT_TRUE(std::isnan(from_bf16(to_bf16(std::nanf("")))));
  EXPECT_TRUE(std::isinf(from_bf16(to_bf16(std::numeric_limits<float>::max()))));
}

TEST(RankSumTest, MaximumOfDoublesKeepsNanOfAnyRank) {
  const double nan = std::nan("");
  const double a[] = {1.0, -2.0, nan, 0.0}, b[] = {0.5, -1.0, 1.0, nan};
  const void* inputs[] = {a, b};
  double out[4];
  max_in_rank_order(DType::f64, out, inputs, 4);
  EXPECT_EQ(out[0], 1.0);
  EXPECT_EQ(out[1], -1.0);
  EXPECT_TRUE(std::isnan(out[2]));
  EXPECT_TRUE(std::isnan(out[3]));
}

TEST(RankSumTest, IntegerSumsWrapAround) {
  const std::int64_t a = std::numeric_limits<std::int64_t>::max(), b = 1;
  const void* inputs[] = {&a, &b};
  std::int64_t out = 0;
  sum_in_rank_order(DType::i64, &out, inputs, 1);
  EXPECT_EQ(out, std::numeric_limits<std::int64_t>::min());
}

}  // namespace
}  // namespace troupe::comm
