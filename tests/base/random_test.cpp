#include "base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "base/hash.h"

namespace troupe::base {
namespace {

using Block = std::array<std::uint32_t, 4>;

/// Philox-4x32-10 written from the paper's equations, with 64-bit products split by division and no state: what
/// CounterRng must compute. Checked below against the values published with Random123.
Block philox(Block c, std::array<std::uint32_t, 2> key) {
  const std::uint64_t two32 = 1ULL << 32;
  for (std::uint32_t round = 0; round < 10; ++round) {
    const std::uint64_t k0 = (key[0] + std::uint64_t{round} * 0x9E3779B9ULL) % two32;
    const std::uint64_t k1 = (key[1] + std::uint64_t{round} * 0xBB67AE85ULL) % two32;
    const std::uint64_t a = 0xD2511F53ULL * c[0], b = 0xCD9E8D57ULL * c[2];
    c = {static_cast<std::uint32_t>((b / two32) ^ c[1] ^ k0), static_cast<std::uint32_t>(b % two32),
         static_cast<std::uint32_t>((a / two32) ^ c[3] ^ k1), static_cast<std::uint32_t>(a % two32)};
  }
  return c;
}

// Random123 1.14.0, kat_vectors, lines "philox4x32 10".
TEST(RandomTest, TheReferenceMatchesThePublishedVectors) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(RandomTest, DrawsAreTheBlocksOfTheCounter) {
  const std::uint64_t seed = 42, stream = 16, index = 0x123456789ABCDEFULL;
  const std::uint64_t key = mix64(seed ^ mix64(stream * 0x9E3779B97F4A7C15ULL + 1));
  CounterRng rng(seed, stream, index);
  for (std::uint32_t block = 0; block < 3; ++block) {
    const Block expected =
        philox({block, 0, static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32)},
               {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)});
    for (const std::uint32_t word : expected) EXPECT_EQ(rng.next_u32(), word);
  }
}

TEST(RandomTest, EqualKeysGiveEqualDrawsAndAnyChangeGivesOthers) {
  const auto first = [](std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
    CounterRng rng(seed, stream, index);
    const std::uint64_t high = rng.next_u32();
    return high << 32 | rng.next_u32();
  };
  EXPECT_EQ(first(1, 2, 3), first(1, 2, 3));
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 10; ++i) {
    for (std::uint64_t j = 0; j < 10; ++j) {
      for (std::uint64_t k = 0; k < 10; ++k) seen.insert(first(i, j, k));
    }
  }
  EXPECT_EQ(seen.size(), 1000u);
}

// Statistical bounds are five standard errors of the fixed sample size; the draws themselves never change.
constexpr int kDraws = 100000;
const double kFiveErrors = 5.0 / std::sqrt(static_cast<double>(kDraws));

TEST(RandomTest, UniformFillsTheUnitInterval) {
  CounterRng rng(7, 0, 0);
  double sum = 0, squares = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double u = rng.uniform();
    ASSERT_TRUE(u >= 0 && u < 1);
    sum += u;
    squares += u * u;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, kFiveErrors * std::sqrt(1.0 / 12));
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, kFiveErrors * std::sqrt(4.0 / 45));
}

TEST(RandomTest, NormalHasTheMomentsOfTheStandardNormal) {
  CounterRng rng(7, 1, 0);
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double z = rng.normal();
    m1 += z;
    m2 += z * z;
    m3 += z * z * z;
    m4 += z * z * z * z;
  }
  EXPECT_NEAR(m1 / kDraws, 0, kFiveErrors);
  EXPECT_NEAR(m2 / kDraws, 1, kFiveErrors * std::sqrt(2.0));
  EXPECT_NEAR(m3 / kDraws, 0, kFiveErrors * std::sqrt(15.0));
  EXPECT_NEAR(m4 / kDraws, 3, kFiveErrors * std::sqrt(96.0));
}

TEST(RandomTest, BelowIsEvenlySpreadAndInRange) {
  CounterRng rng(7, 2, 0);
  std::vector<int> counts(7);
  for (int i = 0; i < kDraws; ++i) ++counts.at(rng.below(7));
  const double p = 1.0 / 7;
  for (const int count : counts)
    EXPECT_NEAR(static_cast<double>(count) / kDraws, p, kFiveErrors * std::sqrt(p * (1 - p)));
  EXPECT_EQ(rng.below(1), 0u);
}

TEST(RandomTest, RangesAreHalfOpen) {
  CounterRng rng(7, 3, 0);
  for (int i = 0; i < 1000; ++i) {
    const double v = rng.uniform(-2.0, 3.0);
    ASSERT_TRUE(v >= -2.0 && v < 3.0);
  }
}

}  // namespace
}  // namespace troupe::base
