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
  cost.encoder_bytes = 7;
  cost.sample_bytes = 100;
  job.training.micro_batch_size = 3;
  const MemoryTable t = learner_memory(job, cost, 2, 9);
  const std::int64_t shard = (2048 + 4096) / 2;
  EXPECT_EQ(t.shard_bytes, shard * 16);
  EXPECT_EQ(t.param_slot_bytes, (2048 + 4096) * 4) << "three slots are one for each of two units";
  EXPECT_EQ(t.grad_slot_bytes, (2 + 1) * 4096 * 4) << "and what the ranks sent of one";
  EXPECT_EQ(t.activation_bytes, 30);
  EXPECT_EQ(t.encoder_bytes, 7);
  EXPECT_EQ(t.snapshot_bytes, shard * 12);
  EXPECT_EQ(t.feed_bytes, 900);
  EXPECT_EQ(t.total(), t.engine_bytes() + t.arena_bytes());
}
TEST_F(MemoryModelTest, WhatNcclAddsUpComesAsOnePartOfAUnit) {
  ModelCost cost;
  cost.units = {testing::make_unit("a", "a", {1024}), testing::make_unit("b", "b", {4096})};
  const std::int64_t alone = learner_memory(job, cost, 1, 0).grad_slot_bytes;
  job.parallelism.reduce = "nccl";
  EXPECT_EQ(learner_memory(job, cost, 2, 0).grad_slot_bytes, (2 * 4096 + 4096 / 2) * 4);
  EXPECT_EQ(learner_memory(job, cost, 1, 0).grad_slot_bytes, alone);
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
TEST_F(MemoryModelTest, AnAverageIsFourBytesMoreInShardAndSnapshot) {
  const ModelCost cost = testing::tiny_cost();
  const MemoryTable without = learner_memory(job, cost, 2, 4);
  job.ema.decay = 0.999;
  const MemoryTable with = learner_memory(job, cost, 2, 4);
  EXPECT_EQ(with.shard_bytes, without.shard_bytes / 16 * 20);
  EXPECT_EQ(with.snapshot_bytes, without.snapshot_bytes / 12 * 16);
  EXPECT_EQ(with.param_slot_bytes + with.grad_slot_bytes, without.param_slot_bytes + without.grad_slot_bytes);
}
TEST_F(MemoryModelTest, Bf16MomentsSaveFourBytesInShardAndSnapshot) {
  const ModelCost cost = testing::tiny_cost();
  const MemoryTable fp32 = learner_memory(job, cost, 2, 4);
  job.optimizer.moments = "bf16";
  const MemoryTable bf16 = learner_memory(job, cost, 2, 4);
  EXPECT_EQ(bf16.shard_bytes, fp32.shard_bytes / 16 * 12);
  EXPECT_EQ(bf16.snapshot_bytes, fp32.snapshot_bytes / 12 * 8);
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
  EXPECT_EQ(t.param_slot_bytes, (2048 + 4096 + replicated) * 2) << "slots are those of the chain's two units";
  EXPECT_EQ(t.grad_slot_bytes, 2 * replicated * 4) << "no unit of the chain has gradients; one is as the ranks sent it";
  EXPECT_EQ(t.snapshot_bytes, replicated / 2 * 12) << "what is frozen is written from where it lies";
  cost.units[0].trainable = true;
  EXPECT_EQ(learner_memory(job, cost, 2, 0).grad_slot_bytes, (2 * 2048 + 2 * replicated) * 4)
      << "slots hold the largest unit that is trained";
}
TEST_F(MemoryModelTest, BlocksKeepWhatTheirLevelSaysAndShareOneWorkspace) {
  ModelCost cost;
  cost.units = {testing::make_unit("a", "a", {1024})};
  testing::set_levels(cost, 5, {1000, 600, 200, 50}, 300);
  const auto activations = [&](const std::string& mode, const std::vector<std::int64_t>& counts) {
    job.activation_checkpoint = {.mode = mode, .counts = counts};
    job.training.micro_batch_size = 2;
    return learner_memory(job, cost, 1, 0).activation_bytes;
  };
  EXPECT_EQ(activations("none", {}), 2 * (4 * 1000 + 500 + 150));
  EXPECT_EQ(activations("full", {}), 2 * (4 * 50 + 25 + 300));
  EXPECT_EQ(activations("auto", {1, 0, 1, 3}), 2 * (500 + 200 + 3 * 50 + 300)) << "the last block recomputes least";
}
TEST_F(MemoryModelTest, ZeroTwoKeepsParametersWholeAndZeroOneGradientsToo) {
  ModelCost cost;
  cost.units = {testing::make_unit("a", "a", {2048}), testing::make_unit("b", "b", {8192}),
                testing::make_unit("c", "c", {8192}), testing::make_unit("d", "d", {4096})};
  const std::int64_t all = 2048 + 8192 + 8192 + 4096;
  job.parallelism.mode = "zero3";
  const MemoryTable zero3 = learner_memory(job, cost, 2, 0);
  job.parallelism.mode = "zero2";
  const MemoryTable zero2 = learner_memory(job, cost, 2, 0);
  job.parallelism.mode = "zero1";
  const MemoryTable zero1 = learner_memory(job, cost, 2, 0);
  EXPECT_EQ(zero3.param_slot_bytes, 3 * 8192 * 4);
  EXPECT_EQ(zero2.param_slot_bytes, all * 4);
  EXPECT_EQ(zero1.param_slot_bytes, all * 4);
  EXPECT_EQ(zero2.grad_slot_bytes, zero3.grad_slot_bytes);
  EXPECT_EQ(zero1.grad_slot_bytes, (8192 + 8192 + all) * 4) << "one slot, one staging, and all";
  EXPECT_EQ(zero1.shard_bytes, all / 2 * 12) << "accumulators lie in the whole gradients";
}
TEST_F(MemoryModelTest, ReplicasShareByTheShardDegree) {
  ModelCost cost;
  cost.units = {testing::make_unit("a", "a", {8192}), testing::make_unit("b", "b", {4096})};
  job.parallelism.mode = "zero3";
  const MemoryTable two = learner_memory(job, cost, 2, 0);
  job.parallelism.mode = "hybrid";
  job.parallelism.data_parallel_shard_degree = 2;
  const MemoryTable hybrid = learner_memory(job, cost, 16, 0);
  EXPECT_EQ(hybrid.shard_bytes, two.shard_bytes);
  EXPECT_EQ(hybrid.param_slot_bytes, two.param_slot_bytes);
  EXPECT_EQ(hybrid.snapshot_bytes, two.snapshot_bytes);
  EXPECT_EQ(hybrid.grad_slot_bytes - two.grad_slot_bytes, (8 * 8192 / 2 - 8192) * 4) << "the shards of 8 replicas";
}
TEST_F(MemoryModelTest, OffloadedStatesAndSnapshotsAreNoMemory) {
  ModelCost cost;
  cost.units = {testing::make_unit("a", "a", {8192}), testing::make_unit("b", "b", {4096})};
  testing::set_levels(cost, 5, {1000, 600, 200, 50}, 300);
  job.activation_checkpoint = {.mode = "none", .counts = {}};
  job.training.micro_batch_size = 1;
  const std::int64_t shard = (8192 + 4096) / 2, largest = 8192 / 2;
  for (const bool is_bf16 : {false, true}) {
    job.precision.param = is_bf16 ? "bf16" : "fp32";
    job.offload = {};
    const MemoryTable kept = learner_memory(job, cost, 2, 0);
    const std::int64_t offloaded = is_bf16 ? 12 : 8;
    job.offload.states = true;
    const MemoryTable states = learner_memory(job, cost, 2, 0);
    EXPECT_EQ(states.offload_bytes, shard * offloaded);
    EXPECT_EQ(states.shard_bytes, kept.shard_bytes - shard * offloaded + 2 * largest * offloaded);
    EXPECT_EQ(states.arena_bytes(), kept.arena_bytes() - kept.snapshot_bytes);
    EXPECT_EQ(states.activation_bytes, kept.activation_bytes);
    job.offload.activations = true;
    const MemoryTable all = learner_memory(job, cost, 2, 0);
    EXPECT_EQ(all.activation_bytes, 3 * 1000 + 150);
    EXPECT_EQ(all.offload_bytes, states.offload_bytes + 4 * 1000 + 500);
  }
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
  // ZeRO-3 (Rajbhandari et al. 2020), 5B, 8 ranks: 15.2 GB static with K=3, G=2; and what the ranks sent of one unit.
  const double gb = static_cast<double>(t.shard_bytes + t.param_slot_bytes + t.grad_slot_bytes) / 1e9;
  EXPECT_NEAR(gb, 15.2 + 0.7, 0.3);
}

}  // namespace
}  // namespace troupe::placement
