#include "workers/report/paired_test.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace troupe::workers {
namespace {

// 2 (C(7,0) + C(7,1)) / 2^7 = 16 / 128.
TEST(McNemarExactTest, CountsTheTailOfTheBinomial) {
  EXPECT_NEAR(mcnemar_exact(6, 1), 0.125, 1e-12);
  EXPECT_NEAR(mcnemar_exact(1, 6), 0.125, 1e-12) << "two-sided";
  EXPECT_NEAR(mcnemar_exact(0, 5), 2.0 / 32, 1e-12);
  EXPECT_NEAR(mcnemar_exact(5, 15), 0.04138946533203125, 1e-12);
}

TEST(McNemarExactTest, FindsNothingWhereDiscordantPairsAreEvenOrAbsent) {
  EXPECT_EQ(mcnemar_exact(3, 3), 1);
  EXPECT_EQ(mcnemar_exact(0, 0), 1);
}

TEST(McNemarExactTest, StaysAProbabilityForManyPairs) {
  EXPECT_NEAR(mcnemar_exact(50'000, 50'000), 1, 1e-9);
  EXPECT_GE(mcnemar_exact(0, 100'000), 0);
  EXPECT_LT(mcnemar_exact(0, 100'000), 1e-300);
}

// p = 31/102, q = 6/102.
TEST(PairedDifferenceIntervalTest, MatchesTheClosedForm) {
  const Interval interval = paired_difference_interval({.both = 60, .only_first = 30, .only_second = 5, .neither = 5});
  EXPECT_NEAR(interval.low, 0.13833174628527717, 1e-12);
  EXPECT_NEAR(interval.high, 0.3518643321460953, 1e-12);
}

TEST(PairedDifferenceIntervalTest, StaysBetweenMinusOneAndOne) {
  const Interval all = paired_difference_interval({.both = 0, .only_first = 3, .only_second = 0, .neither = 0});
  EXPECT_EQ(all.high, 1);
  EXPECT_GT(all.low, -1);
  const Interval nothing = paired_difference_interval({});
  EXPECT_EQ(nothing.low, -1);
  EXPECT_EQ(nothing.high, 1);
}

// Ranks 4 1 5 3 6 2, the negative ones 1 and 2: W+ = 18. Of 64 choices of signs 5 give 18 or more (21, 20, 19, two of
// 18).
TEST(SignedRankTest, CountsEveryChoiceOfSigns) {
  const SignedRankTest test = signed_rank_test(std::vector<double>{1.1, -0.3, 2.2, 0.9, 3.1, -0.5});
  EXPECT_EQ(test.rank_sum, 18);
  EXPECT_EQ(test.pairs, 6);
  EXPECT_TRUE(test.exact);
  EXPECT_NEAR(test.p, 2 * 5.0 / 64, 1e-12);
}

// Without the zero: |d| = 1 1 1 2 2 3, ranks 2 2 2 4.5 4.5 6; the sums 21 and (three times) 19 are as far out: 2 * 4
// / 64.
TEST(SignedRankTest, LeavesZerosOutAndSharesRanksOfTies) {
  const SignedRankTest test = signed_rank_test(std::vector<double>{1, 1, -1, 2, 2, 0, 3});
  EXPECT_EQ(test.rank_sum, 19);
  EXPECT_EQ(test.pairs, 6);
  EXPECT_NEAR(test.p, 2 * 4.0 / 64, 1e-12);
}

TEST(SignedRankTest, FindsNothingWithoutDifferences) {
  const SignedRankTest test = signed_rank_test(std::vector<double>{0, 0, 0});
  EXPECT_EQ(test.p, 1);
  EXPECT_EQ(test.pairs, 0);
}

TEST(SignedRankTest, ApproximatesLargeSamplesCloselyAndSaysSo) {
  // Small for 200 and 201 alike: exact and approximate p must nearly agree.
  const auto p_of = [](int n) {
    std::vector<double> d;
    for (int i = 1; i <= n; ++i) d.push_back(i % 5 < 2 ? -i : i);
    return signed_rank_test(d);
  };
  const SignedRankTest exact = p_of(200), normal = p_of(201);
  EXPECT_TRUE(exact.exact);
  EXPECT_FALSE(normal.exact);
  EXPECT_NEAR(std::log(exact.p), std::log(normal.p), 0.4);
}

// mean 3, s^2 = 2.5, t(4) = 2.776445: half width 2.776445 sqrt(0.5).
TEST(MeanIntervalTest, IsStudents) {
  const MeanInterval five = mean_interval(std::vector<double>{1, 2, 3, 4, 5});
  EXPECT_NEAR(five.mean, 3, 1e-12);
  EXPECT_NEAR(five.interval.high, 3 + 2.776445 * std::sqrt(0.5), 1e-6);
  EXPECT_NEAR(five.interval.low, 3 - 2.776445 * std::sqrt(0.5), 1e-6);
  // t(5) = 2.570582, t(9) = 2.262157 of the usual tables
  const MeanInterval six = mean_interval(std::vector<double>{-1, 1, -1, 1, -1, 1});
  EXPECT_NEAR(six.interval.high, 2.570582 * std::sqrt(1.2 / 6), 5e-4);
  const MeanInterval ten = mean_interval(std::vector<double>{-1, 1, -1, 1, -1, 1, -1, 1, -1, 1});
  EXPECT_NEAR(ten.interval.high, 2.262157 * std::sqrt(10.0 / 9 / 10), 1e-4);
}

TEST(MeanIntervalTest, KnowsNothingFromOneNumber) {
  const MeanInterval one = mean_interval(std::vector<double>{7});
  EXPECT_EQ(one.mean, 7);
  EXPECT_TRUE(std::isinf(one.interval.low));
  EXPECT_TRUE(std::isinf(one.interval.high));
}

}  // namespace
}  // namespace troupe::workers
