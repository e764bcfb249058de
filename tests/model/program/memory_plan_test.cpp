#include "model/program/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/support/visible.h"

namespace troupe::model {
namespace {

bool overlap(std::int64_t a, std::int64_t a_size, std::int64_t b, std::int64_t b_size) {
  return a < b + b_size && b < a + a_size;
}

/// Bytes in use at the busiest operation, each lifetime rounded up: no plan can do with less.
std::int64_t busiest(const std::vector<Lifetime>& lifetimes) {
  std::int64_t most = 0;
  for (const auto& at : lifetimes) {
    std::int64_t sum = 0;
    for (const auto& other : lifetimes) {
      if (other.first <= at.first && at.first <= other.last)
        sum += (other.bytes + kPlanAlignment - 1) / kPlanAlignment * kPlanAlignment;
    }
    most = std::max(most, sum);
  }
  return most;
}

std::vector<Lifetime> pseudo_random(std::uint64_t seed, int count) {
  std::vector<Lifetime> lifetimes;
  const auto next = [&seed](std::uint64_t below) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::int64_t>((seed >> 33) % below);
  };
  for (int i = 0; i < count; ++i) {
    const auto first = next(40);
    lifetimes.push_back({1 + next(5000), first, first + next(12)});
  }
  return lifetimes;
}

TEST(MemoryPlanTest, WhatMeetsInTimeIsApartInMemory) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const auto lifetimes = pseudo_random(seed, 60);
    const auto plan = plan_memory(lifetimes);
    for (std::size_t i = 0; i < lifetimes.size(); ++i) {
      EXPECT_EQ(plan.offsets[i] % kPlanAlignment, 0);
      EXPECT_LE(plan.offsets[i] + lifetimes[i].bytes, plan.bytes);
      for (std::size_t j = 0; j < i; ++j) {
        const bool meet = lifetimes[i].first <= lifetimes[j].last && lifetimes[j].first <= lifetimes[i].last;
        EXPECT_FALSE(meet && overlap(plan.offsets[i], lifetimes[i].bytes, plan.offsets[j], lifetimes[j].bytes))
            << "seed " << seed << ": " << i << " and " << j;
      }
    }
    EXPECT_GE(plan.bytes, busiest(lifetimes));
    EXPECT_LE(plan.bytes, busiest(lifetimes) * 3 / 2) << "seed " << seed;
    EXPECT_EQ(plan_memory(lifetimes).offsets, plan.offsets);
  }
}

TEST(MemoryPlanTest, AChainNeedsTwoNeighboursAtATime) {
  std::vector<Lifetime> chain;
  for (std::int64_t i = 0; i < 10; ++i) chain.push_back({1000, i, i + 1});
  EXPECT_EQ(plan_memory(chain).bytes, 2 * 1024);
}

TEST(MemoryPlanTest, NothingNeedsNothing) { EXPECT_EQ(plan_memory({}).bytes, 0); }

}  // namespace
}  // namespace troupe::model
