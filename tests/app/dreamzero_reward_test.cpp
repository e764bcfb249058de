// DreamZero from recordings to reinforcement learning, in minutes: what it earns does not fall.
#include "tests/app/rl_learning.h"

namespace troupe::app {
namespace {

TEST_F(RlLearningTest, ReinforcementKeepsTheReturnOfAFineTunedDreamZero) {
  expect_end(troupe({"record", "arm7/reach-v1", "--out", "data/arm7-reach-front", "--episodes", "40", "--cameras",
                     "front", "--image-size", "64", "--seed", "1"}),
             0);
  const Words smaller = {"job.seed=1", "data.eval_episodes=[0, 1]"};
  const Words tune = {"sft_arm7_reach_tiny", "cluster.component_placement.learner={node_group: node, placement: '0'}",
                      "training.steps=400", "checkpoint.interval=400", "eval.every=400"};
  learnt("runs", tune + smaller, "eval/loss");
  // so short a fine-tuning seldom reaches the goal, and learns from nearness
  const Words improve = {"rl_dreamzero_tiny_arm7", "env.options.image_size=64", "env.options.sparse=false",
                         "env.num_envs=64",        "training.steps=8",          "checkpoint.interval=8"};
  EXPECT_NEAR(learnt("runs", improve + smaller, "train/actor/ratio"), 1, 0.02);
  verified("runs");

  const Words alike = {"--sampler",
                       "euler",
                       "--steps",
                       "4",
                       "--cfg-scale",
                       "1",
                       "--state-self-only",
                       "--instruction",
                       "guide the arm to the green sphere"};
  const Words play = {"eval", "runs/latest", "--episodes", "200", "--seed", "2000000", "--json", "--compare"};
  const ProgramEnd played = run_program(play + Words{"arm7-reach-tiny/checkpoints/best"} + alike,
                                        {.cwd = dir_.path(), .env = {}, .deadline = 300s});
  ASSERT_EQ(played.exit_code, 0) << played.text();
  const auto report = nlohmann::json::parse(played.out);
  const auto earned = [](const nlohmann::json& of) { return of.at("results").at("eval/return").get<double>(); };
  // the standard error of their mean difference is 3 % of the return
  EXPECT_GE(earned(report), 0.9 * earned(report.at("compare")));
}

}  // namespace
}  // namespace troupe::app
