#include "workers/sweep/swept_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::workers {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names_of(const std::vector<SweptRun>& runs) {
  std::vector<std::string> names;
  for (const SweptRun& run : runs) names.push_back(run.name);
  return names;
}

TEST(SweptRunTest, EverySeedMeetsEveryCombinationOfValues) {
  const auto runs =
      plan_sweep("cartpole", "0..1", {"optimizer.lr=1e-3,1e-4", "training.steps=5", "algorithm.gamma=0.9,1"});
  ASSERT_TRUE(runs) << runs.error().message();
  EXPECT_THAT(names_of(*runs), ElementsAre("cartpole-seed0-lr1e-3-gamma0.9", "cartpole-seed0-lr1e-3-gamma1",
                                           "cartpole-seed0-lr1e-4-gamma0.9", "cartpole-seed0-lr1e-4-gamma1",
                                           "cartpole-seed1-lr1e-3-gamma0.9", "cartpole-seed1-lr1e-3-gamma1",
                                           "cartpole-seed1-lr1e-4-gamma0.9", "cartpole-seed1-lr1e-4-gamma1"));
  EXPECT_THAT(runs->at(5).overrides, ElementsAre("optimizer.lr=1e-3", "training.steps=5", "algorithm.gamma=1",
                                                 "job.name=cartpole-seed1-lr1e-3-gamma1", "job.seed=1"));
}

TEST(SweptRunTest, WhatStandsInBracketsIsOneValue) {
  const auto runs =
      plan_sweep("fold", "7", {"data.eval_episodes=[0,1],[2,3]", "~data.index", "env.options={a: 1, b: 2}"});
  ASSERT_TRUE(runs) << runs.error().message();
  EXPECT_THAT(names_of(*runs), ElementsAre("fold-seed7-eval_episodes-0-1-", "fold-seed7-eval_episodes-2-3-"));
  EXPECT_THAT(runs->at(1).overrides, Contains("data.eval_episodes=[2,3]"));
  EXPECT_THAT(runs->at(1).overrides, Contains("env.options={a: 1, b: 2}"));
  EXPECT_THAT(runs->at(1).overrides, Contains("~data.index"));
}

TEST(SweptRunTest, ValuesThatLookAlikeInANameAreNumbered) {
  const auto runs = plan_sweep("fold", "0", {"data.sets=x/y,x-y,X/Y,z"});
  ASSERT_TRUE(runs) << runs.error().message();
  EXPECT_THAT(names_of(*runs),
              ElementsAre("fold-seed0-setsx-y", "fold-seed0-setsx-y-2", "fold-seed0-setsx-y-3", "fold-seed0-setsz"));
}

TEST(SweptRunTest, ASweepIsCalledByWhatItGoesThrough) {
  EXPECT_EQ(sweep_name("fold", {"training.steps=5", "~data.index"}), "fold-sweep");
  EXPECT_EQ(sweep_name("fold", {"optimizer.lr=1,2", "training.steps=5", "data.sets=a,b"}), "fold-sweep-lr-sets");
}

TEST(SweptRunTest, WhatCannotBeSweptIsRefused) {
  struct Case {
    std::string seeds, word, why;
  };
  const std::string many(40, 'x');
  for (const Case& c :
       {Case{"", "a.b=1", "--seeds is empty"}, Case{"1,1", "a.b=1", "a seed is there twice"},
        Case{"0..5000", "a.b=1", "more than 1000 seeds"}, Case{"a", "a.b=1", "'a' is no seed"},
        Case{"0", "job.seed=1,2", "--seeds names the seeds"}, Case{"0", "job.name=a,b", "a sweep sets job.name itself"},
        Case{"0", "a.b=1,1", "two runs would be named 'job-seed0-b1'"},
        Case{"0", "a.b=" + many + many + ",1", "give a shorter job.name"}}) {
    const auto runs = plan_sweep("job", c.seeds, {c.word});
    ASSERT_FALSE(runs) << c.word;
    EXPECT_THAT(runs.error().message(), HasSubstr(c.why));
  }
}

}  // namespace
}  // namespace troupe::workers
