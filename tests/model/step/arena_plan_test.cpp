#include "model/step/arena_plan.h"

#include <gtest/gtest.h>

#include "tests/model/step/random_step.h"

namespace troupe::model {
namespace {

TEST(ArenaPlanTest, BytesFollowTheFormulas) {
  StepShape shape = chain_shape({4096, 8192, 2048}, /*world=*/2, /*param_slots=*/2, /*grad_slots=*/2);
  shape.param_bytes = 2;
  const ArenaPlan plan(shape);
  const std::int64_t shard = (4096 + 8192 + 2048) / 2;
  for (const ArenaKind arena : {ArenaKind::master, ArenaKind::m, ArenaKind::v, ArenaKind::gradient})
    EXPECT_EQ(plan.bytes(arena), 4 * shard);
  EXPECT_EQ(plan.bytes(ArenaKind::copy), 2 * shard);
  EXPECT_EQ(plan.bytes(ArenaKind::slots), 2 * 8192 * 2);
  EXPECT_EQ(plan.bytes(ArenaKind::gradient_slots), 2 * 8192 * 4);
  EXPECT_EQ(plan.bytes(ArenaKind::staging), 8192 * 4);
  EXPECT_EQ(plan.bytes(ArenaKind::snapshot), 12 * shard);
  EXPECT_EQ(plan.bytes(ArenaKind::frozen) + plan.bytes(ArenaKind::replicated), 0);
}

TEST(ArenaPlanTest, AnAverageIsOneMoreShardBehindTheMomentsOfASnapshot) {
  StepShape shape = chain_shape({4096, 8192}, 2, 2, 1);
  shape.keeps_average = true;
  const ArenaPlan plan(shape);
  EXPECT_EQ(plan.bytes(ArenaKind::ema), plan.bytes(ArenaKind::master));
  EXPECT_EQ(plan.bytes(ArenaKind::snapshot), (4096 + 8192) / 2 * 16);
  EXPECT_EQ(plan.snapshot(StateKind::ema, 1),
            (ArenaRange{ArenaKind::snapshot, 4096 / 2 * 16 + 8192 / 2 * 12, 8192 / 2 * 4}));
}

TEST(ArenaPlanTest, SlotsForAllUnitsHaveTheirSizes) {
  const ArenaPlan plan(chain_shape({4096, 8192, 2048}, 2, 3, 1));
  EXPECT_EQ(plan.bytes(ArenaKind::slots), (4096 + 8192 + 2048) * 4);
  EXPECT_EQ(plan.parameters(2).begin, (4096 + 8192) * 4);
}

TEST(ArenaPlanTest, AccumulatorsLieInGradientsThatAreAddedUpWhole) {
  StepShape shape = chain_shape({4096, 8192, 2048}, 2, 3, 1);
  shape.whole_gradients = true;
  shape.rank = 1;
  const ArenaPlan plan(shape);
  EXPECT_EQ(plan.bytes(ArenaKind::gradient), 0);
  EXPECT_EQ(plan.bytes(ArenaKind::gradient_slots), (8192 + 4096 + 8192 + 2048) * 4) << "one slot, and all";
  EXPECT_EQ(plan.gradient(1).begin, plan.whole_gradient(1).begin + 8192 / 2 * 4);
}

TEST(ArenaPlanTest, ARankThatIsAloneHasNeitherSlotsNorStaging) {
  const ArenaPlan plan(chain_shape({4096, 8192}, 1, 2, 1));
  EXPECT_EQ(plan.bytes(ArenaKind::slots) + plan.bytes(ArenaKind::staging), 0);
  EXPECT_EQ(plan.parameters(1), plan.state(StateKind::master, 1));
}

TEST(ArenaPlanTest, NoTwoBuffersOfAnArenaMeetButSlotsAndStaging) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto step = random_step(seed);
    const ArenaPlan& plan = *step.plan;
    std::vector<ArenaRange> ranges;
    for (int u = 0; u < static_cast<int>(plan.shape().units.size()); ++u) {
      ranges.push_back(plan.is_stashed(u) ? plan.stashed(u) : plan.activation(u));
      const auto keep = plan.shape().units[static_cast<std::size_t>(u)].keep;
      ranges.push_back(plan.state(StateKind::master, u));
      if (plan.gathered(u) != ranges.back()) ranges.push_back(plan.gathered(u));
      for (const StateKind kind : plan.kinds(u)) {
        if (kind != StateKind::master) ranges.push_back(plan.state(kind, u));
        if (keep != UnitKeep::frozen) ranges.push_back(plan.snapshot(kind, u));
      }
      if (keep == UnitKeep::trained) ranges.push_back(plan.gradient(u));
    }
    for (std::size_t a = 0; a < ranges.size(); ++a) {
      ASSERT_LE(ranges[a].begin + ranges[a].bytes, plan.bytes(ranges[a].arena)) << "seed " << seed;
      for (std::size_t b = 0; b < a; ++b) ASSERT_FALSE(overlap(ranges[a], ranges[b])) << "seed " << seed;
    }
    for (const Op& op : step.operations) {
      for (const Access& access : op.accesses)
        ASSERT_LE(access.range.begin + access.range.bytes, plan.bytes(access.range.arena)) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace troupe::model
