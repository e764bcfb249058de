#include "data/sampling/mixture_order.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/random.h"
#include "data/sampling/sampler.h"

namespace troupe::data {
namespace {

constexpr std::uint64_t kPeriod = std::uint64_t{1} << 32;

using Weights = std::vector<double>;

const std::vector<Weights>& mixtures() {
  static const std::vector<Weights> kMixtures = {
      {1}, {1, 1}, {1, 2}, {3, 5, 7}, {0.7, 0.2, 0.05, 0.05}, {1, 1e-6}, {1e-12, 1, 1e-12}, Weights(37, 1.0)};
  return kMixtures;
}

TEST(MixtureOrderTest, CountsEqualCountingTheDraws) {
  for (const Weights& weights : mixtures()) {
    const MixtureOrder order(weights);
    for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{42}, std::uint64_t{1} << 60}) {
      std::vector<std::uint64_t> drawn(weights.size(), 0);
      for (std::uint64_t q = 0; q < 3000; ++q) {
        for (std::size_t i = 0; i < weights.size(); ++i) ASSERT_EQ(order.count_before(seed, i, q), drawn[i]) << q;
        const MixtureOrder::Draw draw = order.draw(seed, q);
        ASSERT_LT(draw.dataset, weights.size());
        ASSERT_EQ(draw.inner, drawn[draw.dataset]) << "inner positions are 0, 1, 2, ... of each dataset";
        ++drawn[draw.dataset];
      }
    }
  }
}

TEST(MixtureOrderTest, CountsGoOnAcrossThePeriodAndAtAnyHeight) {
  const MixtureOrder order(Weights{3, 5, 7});
  for (const std::uint64_t start : {kPeriod - 500, 7 * kPeriod - 3, (std::uint64_t{1} << 62) + 12345}) {
    std::vector<std::uint64_t> drawn;
    for (std::size_t i = 0; i < 3; ++i) drawn.push_back(order.count_before(9, i, start));
    EXPECT_EQ(drawn[0] + drawn[1] + drawn[2], start);
    for (std::uint64_t q = start; q < start + 1000; ++q) {
      const MixtureOrder::Draw draw = order.draw(9, q);
      ASSERT_EQ(draw.inner, drawn[draw.dataset]++) << q;
    }
  }
}

TEST(MixtureOrderTest, OnePeriodHoldsExactlyTheShares) {
  for (const Weights& weights : mixtures()) {
    const MixtureOrder order(weights);
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    double shares = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      EXPECT_EQ(static_cast<double>(order.count_before(1, i, kPeriod)) / static_cast<double>(kPeriod), order.share(i));
      EXPECT_GT(order.share(i), 0) << "a dataset with a weight is drawn";
      EXPECT_NEAR(order.share(i), weights[i] / total, 2.0 / static_cast<double>(kPeriod));
      shares += order.share(i);
    }
    EXPECT_EQ(shares, 1.0);
  }
}

TEST(MixtureOrderTest, EveryAlignedWindowIsStratified) {
  const Weights weights = {0.61, 0.3, 0.08, 0.01};
  const MixtureOrder order(weights);
  CounterRng random(5, 0, 0);
  for (int k = 0; k <= 31; ++k) {
    const std::uint64_t size = std::uint64_t{1} << k;
    for (int trial = 0; trial < 50; ++trial) {
      const std::uint64_t begin = (std::uint64_t{random.next_u32()} << 10 | random.below(1024)) / size * size;
      for (std::size_t i = 0; i < weights.size(); ++i) {
        const auto drawn =
            static_cast<double>(order.count_before(77, i, begin + size) - order.count_before(77, i, begin));
        ASSERT_LT(std::abs(drawn - order.share(i) * static_cast<double>(size)), 1.0) << k << " " << begin;
      }
    }
  }
}

TEST(MixtureOrderTest, ARareDatasetComesOnceInAPeriod) {
  const MixtureOrder order(Weights{1, 1e-15});
  EXPECT_EQ(order.count_before(3, 1, kPeriod), 1u);
  EXPECT_EQ(order.count_before(3, 1, 5 * kPeriod), 5u);
  std::uint64_t low = 0, high = kPeriod;  // where it comes, by bisection
  while (high - low > 1) (order.count_before(3, 1, (low + high) / 2) == 0 ? low : high) = (low + high) / 2;
  EXPECT_EQ(order.dataset_at(3, low), 1u);
  EXPECT_EQ(order.draw(3, low + 2 * kPeriod).inner, 2u);
}

TEST(MixtureOrderTest, ManyRareDatasetsFitBesideALargeOne) {
  Weights weights(1000, 1e-20);
  weights[500] = 1;
  const MixtureOrder order(weights);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) total += order.count_before(0, i, kPeriod);
  EXPECT_EQ(total, kPeriod);
  EXPECT_EQ(order.count_before(0, 500, kPeriod), kPeriod - 999);
}

TEST(MixtureOrderTest, OneDatasetKeepsTheFrozenOrder) {
  for (const MixtureOrder& order : {MixtureOrder(), MixtureOrder(Weights{0.25})}) {
    for (const std::uint64_t q : {std::uint64_t{0}, std::uint64_t{12345}, kPeriod + 7, ~std::uint64_t{0}}) {
      const MixtureOrder::Draw draw = order.draw(42, q);
      EXPECT_EQ(draw.dataset, 0u);
      EXPECT_EQ(draw.inner, q);
      EXPECT_EQ(order.count_before(42, 0, q), q);
      EXPECT_EQ(draw_sample(MixtureOrder::inner_seed(42, draw.dataset), draw.inner, 97).index,
                draw_sample(42, q, 97).index);
    }
  }
}

TEST(MixtureOrderTest, TheSeedMovesTheChoiceAndEveryDatasetHasItsOwnOrder) {
  const MixtureOrder order(Weights{1, 1, 1});
  int differing = 0;
  for (std::uint64_t q = 0; q < 300; ++q) differing += order.dataset_at(1, q) != order.dataset_at(2, q) ? 1 : 0;
  EXPECT_GT(differing, 50);
  EXPECT_NE(MixtureOrder::inner_seed(42, 0), MixtureOrder::inner_seed(42, 1));
  EXPECT_NE(MixtureOrder::inner_seed(42, 1), MixtureOrder::inner_seed(42, 2));
}

}  // namespace
}  // namespace troupe::data
