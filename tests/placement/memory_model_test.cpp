#include "placement/memory_model.h"

#include <gtest/gtest.h>

#include "tests/placement/model_costs.h"

namespace troupe::placement {
namespace {

/// A test changes its job.
struct MemoryModelTest : ::testing::Test {
  JobConfig job = testing::small_job();
};

TEST_F(MemoryModelTest, EntriesStartAtMultiplesOf64Elements) {
  // 1 element, then 1023 from element 64 on: 1087 in all, padded to 2 * 1024.
  EXPECT_EQ(padded_numel({1, 1023}, 2), 2048);
  EXPECT_EQ(padded_numel({64, 960}, 1), 1024);
  EXPECT_EQ(padded_numel({65, 960}, 1), 2048);
}
TEST_F(MemoryModelTest, TotalIsAMultipleOfWorldTimes1024) {
  EXPECT_EQ(padded_numel({1}, 1), 1024);
  EXPECT_EQ(padded_numel({1}, 8), 8192);
  EXPECT_EQ(padded_numel({3 * 1024 + 1}, 3), 6 * 1024);
}
TEST_F(MemoryModelTest, UnitWithoutParametersIsEmpty) { EXPECT_EQ(padded_numel({}, 4), 0); }

TEST_F(MemoryModelTest, ShardAndSlotBytesFollowTheTable) {
  ModelCost cost;
  cost.units = {testing::make_unit("a", "a", {1024}), testing::make_unit("b", "b", {4096})};
  cost.activation_bytes_per_sample = 10;
  cost.workspace_bytes_per_sample = 5;
  cost.encoder_bytes = 7;
  cost.sample_bytes = 100;
  job.training.micro_batch_size = 3;
  const MemoryTable t = learner_memory(job, cost, 2, 9);
  const std::int64_t shard = (2048 + 4096) / 2;
  EXPECT_EQ(t.shard_bytes, shard * 16);
  EXPECT_EQ(t.param_slot_bytes, 2 * 4096 * 4) << "three slots are clipped to two units";
  EXPECT_EQ(t.grad_slot_bytes, 2 * 4096 * 4);
  EXPECT_EQ(t.activation_bytes, 45);
  EXPECT_EQ(t.encoder_bytes, 7);
  EXPECT_EQ(t.snapshot_bytes, shard * 12);
  EXPECT_EQ(t.feed_bytes, 900);
  EXPECT_EQ(t.total(), t.engine_bytes() + t.arena_bytes());
}
TEST_F(MemoryModelTest, ARankThatIsAloneHasNoParameterSlots) {
  const ModelCost cost = testing::tiny_cost();
  EXPECT_EQ(learner_memory(job, cost, 1, 4).param_slot_bytes, 0);
  EXPECT_GT(learner_memory(job, cost, 2, 4).param_slot_bytes, 0);
}
TEST_F(MemoryModelTest, Bf16AddsAShardCopyAndHalvesParamSlots) {
  const ModelCost cost = testing::tiny_cost();
  const MemoryTable fp32 = learner_memory(job, cost, 2, 4);
  job.precision.param = "bf16";
  const MemoryTable bf16 = learner_memory(job, cost, 2, 4);
  EXPECT_EQ(bf16.shard_bytes, fp32.shard_bytes / 16 * 18);
  EXPECT_EQ(bf16.param_slot_bytes * 2, fp32.param_slot_bytes);
  EXPECT_EQ(bf16.grad_slot_bytes, fp32.grad_slot_bytes);
}
TEST_F(MemoryModelTest, FrozenUnitsKeepTheirValuesAndResidentOnesLieOnEveryRank) {
  ModelCost cost;
  cost.units = {testing::make_unit("a", "a", {1024}), testing::make_unit("b", "b", {4096}),
                testing::make_unit("resident", "resident", {3000})};
  cost.units[0].trainable = cost.units[1].trainable = false;
  cost.units[2].replicated = true;
  job.precision.param = "bf16";
  const MemoryTable t = learner_memory(job, cost, 2, 0);
  const std::int64_t frozen = (2048 + 4096) / 2, replicated = 4096;
  EXPECT_EQ(t.shard_bytes, frozen * 2 + replicated / 2 * 18);
  EXPECT_EQ(t.param_slot_bytes, (2 * 4096 + replicated) * 2) << "slots are those of the chain's two units";
  EXPECT_EQ(t.grad_slot_bytes, replicated * 4) << "no unit of the chain has gradients";
  EXPECT_EQ(t.snapshot_bytes, replicated / 2 * 12) << "what is frozen is written from where it lies";
  cost.units[0].trainable = true;
  EXPECT_EQ(learner_memory(job, cost, 2, 0).grad_slot_bytes, (2 * 2048 + replicated) * 4)
      << "slots hold the largest unit that is trained";
}
TEST_F(MemoryModelTest, FeedHoldsAStepAndThePrefetchedBatches) {
  job.data.prefetch_batches = 2;
  EXPECT_EQ(feed_slots(job, {.global = 24, .micro = 4, .data_ranks = 2, .accumulation = 3}), 4 * 5);
}
TEST_F(MemoryModelTest, FeedHoldsTheRanksShareOfHeldOutWindows) {
  job.eval.every = 10;
  job.eval.max_samples = 9;
  EXPECT_EQ(feed_slots(job, {.global = 8, .micro = 1, .data_ranks = 4, .accumulation = 2}), 1 * 4 + 3);
}
TEST_F(MemoryModelTest, FiveBillionParametersOnEightRanksMatchTheSpecification) {
  job.precision.param = "bf16";
  const MemoryTable t = learner_memory(job, testing::cost_5b(), 8, 0);
  // ZeRO-3 (Rajbhandari et al. 2020), 5B, 8 ranks: 15 GB static with K=3, G=2.
  const double gb = static_cast<double>(t.shard_bytes + t.param_slot_bytes + t.grad_slot_bytes) / 1e9;
  EXPECT_NEAR(gb, 15.2, 0.3);
}

}  // namespace
}  // namespace troupe::placement
