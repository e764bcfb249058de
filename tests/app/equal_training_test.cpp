// The same job, split over ranks and processes in different ways, trains to the same weights.
#include <cmath>

#include "tests/app/run_fixture.h"

namespace troupe::app {
namespace {

using EqualTrainingTest = RunTest;

void expect_close(const std::map<std::int64_t, double>& a, const std::map<std::int64_t, double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [step, value] : a) EXPECT_NEAR(b.at(step), value, 1e-5 * std::abs(value)) << "step " << step;
}

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

TEST_F(EqualTrainingTest, TwoRunsOnThreadsAreEqualToTheBit) {
  ASSERT_TRUE(succeeded(run_small({"job.run_root=first"})));
  ASSERT_TRUE(succeeded(run_small({"job.run_root=second"})));
  const std::string weights = exported("first");
  EXPECT_TRUE(weights == exported("second"));
  EXPECT_TRUE(weights == exported("first")) << "exporting twice differs";
  ASSERT_TRUE(succeeded(run_small({"job.run_root=third", "job.seed=8"})));
  EXPECT_FALSE(weights == exported("third")) << "another seed made the same weights";
}

}  // namespace
}  // namespace troupe::app
