#include "model/cores/core_rates.h"

#include <gmock/gmock.h>

#include "kernels/product.h"

namespace troupe::model {
namespace {

CoreRates rates_with(KernelFamily family, const KernelFeatures& coefficients, int threads) {
  CoreRates rates{.threads = threads};
  rates.coefficients[0][static_cast<std::size_t>(family)] = coefficients;
  return rates;
}

TEST(CoreRatesTest, AProductBelowTheTileRuleIsOneCallOnOneThread) {
  const CoreRates rates = rates_with(KernelFamily::product_nt, {1000, 1, 10, 100}, 8);
  const KernelWork small{.family = KernelFamily::product_nt, .m = 2, .n = 3, .k = 5};
  // 1 call, 2 * 3 * 5 multiplications, (2 + 3) * 5 operands, 2 * 3 results
  EXPECT_DOUBLE_EQ(seconds_of(small, rates, 8), 1000 + 30 + 250 + 600);
  EXPECT_DOUBLE_EQ(seconds_of(small, rates, 1), seconds_of(small, rates, 8));
}

TEST(CoreRatesTest, ALargeProductTakesRoundsOfItsTiles) {
  const CoreRates rates = rates_with(KernelFamily::product_nn, {0, 1, 0, 0}, 4);
  const KernelWork large{.family = KernelFamily::product_nn, .m = 1024, .n = 768, .k = 512};
  const TileGrid grid = product_tiles(1024, 768, 512);
  ASSERT_GT(grid.count(), 4);
  const double tile = 1024.0 * 768 * 512 / static_cast<double>(grid.count());
  for (const int threads : {1, 3, 4, 100}) {
    const auto rounds = (grid.count() + threads - 1) / threads;
    EXPECT_NEAR(seconds_of(large, rates, threads), static_cast<double>(rounds) * tile, 1e-3) << threads;
  }
}

TEST(CoreRatesTest, AttentionTakesRoundsOfHeads) {
  const CoreRates rates = rates_with(KernelFamily::attention, {7, 0, 0, 1}, 4);
  const KernelWork work{.family = KernelFamily::attention, .m = 10, .n = 20, .k = 8, .heads = 6};
  EXPECT_DOUBLE_EQ(seconds_of(work, rates, 4), 2 * (7 + 200));
  EXPECT_DOUBLE_EQ(seconds_of(work, rates, 1), 6 * (7 + 200));
  EXPECT_DOUBLE_EQ(work.product_flops(), 4.0 * 10 * 20 * 8 * 6);
}

TEST(CoreRatesTest, BytesAreSharedByThreadsAndCostMoreBeyondTheCache) {
  const CoreRates rates = rates_with(KernelFamily::gelu, {5, 2, 3, 0}, 4);
  KernelWork work{.family = KernelFamily::gelu, .bytes = 100};
  EXPECT_DOUBLE_EQ(seconds_of(work, rates, 4), 5 + 200);
  EXPECT_DOUBLE_EQ(seconds_of(work, rates, 2), 5 + 400) << "half of the threads that were measured";
  EXPECT_DOUBLE_EQ(seconds_of(work, rates, 16), 5 + 200) << "no more than were measured";
  work.bytes = kCachedBytes + 10;
  EXPECT_DOUBLE_EQ(seconds_of(work, rates, 4), 5 + 2 * work.bytes + 30);
  work.calls = 3;
  EXPECT_DOUBLE_EQ(seconds_of(work, rates, 4), 3 * (5 + 2 * work.bytes + 30));
  const CoreRates serial = rates_with(KernelFamily::serial, {5, 2, 0, 0}, 4);
  EXPECT_DOUBLE_EQ(seconds_of({.family = KernelFamily::serial, .bytes = 100}, serial, 1), 205) << "one thread anyway";
}

TEST(CoreRatesTest, CoefficientsAreFoundFromTimesThatTheyMade) {
  const KernelFeatures made = {2e-6, 1e-11, 3e-10, 0};
  const CoreRates rates = rates_with(KernelFamily::product_tn, made, 2);
  std::vector<TimedWork> timed;
  for (const std::int64_t m : {16, 100, 700}) {
    for (const std::int64_t n : {24, 384}) {
      for (const std::int64_t k : {64, 900}) {
        const KernelWork work{.family = KernelFamily::product_tn, .m = m, .n = n, .k = k};
        timed.push_back({work, seconds_of(work, rates, 2)});
      }
    }
  }
  const KernelFeatures found = fit_coefficients(timed, 2);
  for (const TimedWork& one : timed) {
    CoreRates again = rates_with(KernelFamily::product_tn, found, 2);
    EXPECT_NEAR(seconds_of(one.work, again, 2) / one.seconds, 1, 0.01);
  }
  for (const double value : found) EXPECT_GE(value, 0);
}

TEST(CoreRatesTest, NoCoefficientIsNegativeWhateverTheTimes) {
  // more bytes in less time
  const std::vector<TimedWork> timed = {{{.family = KernelFamily::norm, .bytes = 1e4}, 4e-3},
                                        {{.family = KernelFamily::norm, .bytes = 1e6}, 2e-3},
                                        {{.family = KernelFamily::norm, .bytes = 1e8}, 1e-3}};
  for (const double value : fit_coefficients(timed, 2)) EXPECT_GE(value, 0);
  EXPECT_GT(fit_coefficients(timed, 2)[0], 0);
}

}  // namespace
}  // namespace troupe::model
