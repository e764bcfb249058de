#include "placement/recompute_plan.h"

#include <gmock/gmock.h>

#include "placement/memory_model.h"
#include "placement/sharding.h"
#include "tests/placement/model_costs.h"

namespace troupe::placement {
namespace {

/// What a job comes to where its activations may have so many bytes.
class RecomputePlanTest : public ::testing::Test {
 protected:
  RecomputePlanTest() { testing::set_levels(cost_, 10, {1000, 600, 200, 50}, 300); }
  JobConfig decide(std::int64_t bytes) {
    return with_recompute(job_, cost_, [&](const JobConfig& job) { return activations(job) <= bytes; });
  }
  std::int64_t activations(const JobConfig& job) const { return learner_memory(job, cost_, 1, 0).activation_bytes; }

  JobConfig job_ = [] {
    JobConfig job = testing::small_job();
    job.training.micro_batch_size = 1;
    job.activation_checkpoint = {};
    return job;
  }();
  ModelCost cost_;
};

TEST_F(RecomputePlanTest, NothingIsRunAgainWhereAllFits) {
  EXPECT_EQ(decide(1 << 20).activation_checkpoint.mode, "none");
  EXPECT_TRUE(decide(1 << 20).activation_checkpoint.counts.empty());
}

TEST_F(RecomputePlanTest, WhereNotEvenFullFitsItIsFull) { EXPECT_EQ(decide(10).activation_checkpoint.mode, "full"); }

TEST_F(RecomputePlanTest, MemoryIsFilledFromTheLevelThatSavesMostForAByte) {
  // attention for 150 bytes more saves 2e9, cheap for 550 9.7e9, none for 950 1e10: 13e6, 17.6e6 and 10.5e6 a byte
  const auto full = activations(decide(10));
  // half of that for the last block
  const auto some = decide(full + 2 * 550 + 275 + 100).activation_checkpoint;
  EXPECT_EQ(some.mode, "auto");
  EXPECT_THAT(some.counts, ::testing::ElementsAre(0, 3, 0, 7));
  EXPECT_EQ(recompute_text(block_counts(some, 10)), "3 cheap, 7 full");
}

TEST_F(RecomputePlanTest, NoDecisionFitsLessThanItCould) {
  std::int64_t before = 0;
  for (std::int64_t bytes = 500; bytes < 12'000; bytes += 37) {
    const JobConfig job = decide(bytes);
    const BlockCounts counts = block_counts(job.activation_checkpoint, 10);
    EXPECT_EQ(counts[0] + counts[1] + counts[2] + counts[3], 10);
    if (bytes >= activations(decide(10))) {
      EXPECT_LE(activations(job), bytes);
    }
    EXPECT_GE(activations(job), before) << "more memory is not used less";
    before = activations(job);
  }
}

TEST_F(RecomputePlanTest, WhatTheJobSaysStays) {
  job_.activation_checkpoint = {.mode = "auto", .counts = {1, 2, 3, 4}};
  EXPECT_THAT(decide(10).activation_checkpoint.counts, ::testing::ElementsAre(1, 2, 3, 4));
  job_.activation_checkpoint = {.mode = "attention", .counts = {}};
  EXPECT_EQ(decide(10).activation_checkpoint.mode, "attention");
}

class ShardingTest : public RecomputePlanTest {
 protected:
  std::string mode(const std::vector<std::string>& fitting, std::int64_t ranks, std::int64_t accumulation) {
    const auto fits = [&](const JobConfig& job) {
      return std::find(fitting.begin(), fitting.end(), job.parallelism.mode) != fitting.end();
    };
    return with_sharding(job_, cost_, {.data_ranks = ranks, .accumulation = accumulation}, fits).parallelism.mode;
  }
};

TEST_F(ShardingTest, TheModeThatMovesLeastAndFitsIsTaken) {
  EXPECT_EQ(mode({"zero1", "zero2", "zero3"}, 4, 2), "zero1");
  EXPECT_EQ(mode({"zero2", "zero3"}, 4, 2), "zero2");
  EXPECT_EQ(mode({"zero3"}, 4, 2), "zero3");
  EXPECT_EQ(mode({}, 4, 2), "zero3") << "the smallest, which the plan then refuses";
}

TEST_F(ShardingTest, WithOneMicroBatchAStepZeroOneGainsNothing) { EXPECT_EQ(mode({"zero1", "zero2"}, 4, 1), "zero2"); }

TEST_F(ShardingTest, ARankThatIsAloneHasNothingToKeep) { EXPECT_EQ(mode({"zero1", "zero2"}, 1, 2), "zero3"); }

TEST_F(ShardingTest, AModeThatTheJobNamesStays) {
  job_.parallelism.mode = "zero2";
  EXPECT_EQ(mode({}, 4, 2), "zero2");
}

}  // namespace
}  // namespace troupe::placement
