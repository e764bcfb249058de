// The same job, split over ranks and processes in different ways, trains to the same weights.

#include "tests/app/run_fixture.h"

namespace troupe::app {
namespace {

using EqualTrainingTest = RunTest;

TEST_F(EqualTrainingTest, RanksAndAccumulationSplitOneBatchWithoutChangingTheLosses) {
  const auto one = run_small({"job.run_root=one", "cluster.component_placement.learner=0"});
  ASSERT_TRUE(succeeded(one));
  const auto threads = run_small({"job.run_root=threads"});
  ASSERT_TRUE(succeeded(threads));
  const auto processes = run_small(in_processes() + std::vector<std::string>{"job.run_root=processes"});
  ASSERT_TRUE(succeeded(processes));
  const auto losses = curve("train/loss", "one");
  ASSERT_EQ(losses.size(), 20u);
  EXPECT_NE(losses.at(1), losses.at(20));
  expect_close(losses, curve("train/loss", "threads"));
  expect_close(losses, curve("train/loss", "processes"));
  // Two ranks add two numbers, in whatever order: threads and processes agree to the bit.
  EXPECT_TRUE(exported("threads") == exported("processes"));
  for (const char* root : {"one", "threads", "processes"}) expect_verified(80, 0, root);
}

TEST_F(EqualTrainingTest, ReplicasOfTwoRanksTrainGoOnAndSaveOneState) {
  const std::vector<std::string> four = {"cluster.component_placement.learner=0:0-3", "training.micro_batch_size=1"};
  const std::vector<std::string> replicas = {"parallelism.mode=hybrid", "parallelism.data_parallel_shard_degree=2"};
  ASSERT_TRUE(succeeded(run_small(four + std::vector<std::string>{"job.run_root=zero3", "parallelism.mode=zero3"})));
  ASSERT_TRUE(succeeded(run_small(four + replicas + in_processes() + std::vector<std::string>{"job.run_root=whole"})));
  expect_close(curve("train/loss", "zero3"), curve("train/loss", "whole"));
  ASSERT_TRUE(succeeded(run_small(four + replicas + std::vector<std::string>{"training.steps=10"})));
  expect_end(run_small(four + replicas + std::vector<std::string>{"--resume", "auto"}), 0, {"resuming at step 10"});
  EXPECT_TRUE(exported() == exported("whole"));
  for (const char* root : {"zero3", "whole", "runs"}) expect_verified(80, 0, root);
}

TEST_F(EqualTrainingTest, ThreadsAndRecomputeOfALearnerChangeNoBit) {
  const std::vector<std::string> wide = {"training.steps=4", "model.dit.dim=128", "model.dit.num_heads=4",
                                         "model.dit.ffn_dim=512", "cluster.component_placement.learner=0"};
  const auto train = [&](const std::string& root, const std::string& threads, const std::string& recompute) {
    ASSERT_TRUE(succeeded(
        run_small(wide + std::vector<std::string>{"job.run_root=" + root, "cluster.threads.learner=" + threads,
                                                  "activation_checkpoint.mode=" + recompute})));
  };
  train("one", "1", "none");
  train("three", "3", "auto");
  train("again", "1", "full");
  const auto weights = exported("one");
  EXPECT_TRUE(weights == exported("three"));
  EXPECT_TRUE(weights == exported("again"));
}

TEST_F(EqualTrainingTest, TwoRunsOnThreadsAreEqualToTheBit) {
  ASSERT_TRUE(succeeded(run_small({"job.run_root=first"})));
  ASSERT_TRUE(succeeded(run_small({"job.run_root=second"})));
  const auto weights = exported("first");
  EXPECT_TRUE(weights == exported("second"));
  EXPECT_TRUE(weights == exported("first")) << "exporting twice differs";
  ASSERT_TRUE(succeeded(run_small({"job.run_root=third", "job.seed=8"})));
  EXPECT_FALSE(weights == exported("third")) << "another seed made the same weights";
}

}  // namespace
}  // namespace troupe::app
