// A policy for an environment, trained on recorded demonstrations and then by reinforcement learning.
#include "tests/app/rl_fixture.h"

namespace troupe::app {
namespace {

using ::testing::HasSubstr;

class ImitationTest : public RlRunTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(
        succeeded(troupe({"record", "arm7/reach-v1", "--out", "data/arm7-reach", "--episodes", "9", "--seed", "3"})));
  }
  ProgramEnd clone(const std::string& root, const Words& words = {}) const {
    return troupe(Words{"run", "rl_arm7_reach_sft", "job.run_root=" + (dir_ / root), "training.steps=20",
                        "checkpoint.interval=10", "eval.every=10", "training.global_batch_size=32",
                        "training.micro_batch_size=16", "metrics.every=1", "policy.hidden=[32]"} +
                  words);
  }
};

TEST_F(ImitationTest, DemonstrationsTrainAPolicyThatPlaysAndGoesOnInTheSimulator) {
  expect_end(clone("sft"), 0, {"RUN COMPLETE"});
  const auto losses = curve("sft", "train/loss");
  EXPECT_LT(losses.rbegin()->second, losses.begin()->second);
  EXPECT_EQ(losses, curve("sft", "train/action_loss"));
  EXPECT_EQ(curve("sft", "eval/loss").size(), 3u) << "before, half way, at the end";
  EXPECT_THAT(verified("sft"), HasSubstr("640 positions  trained 640  void 0  lost 0  doubled 0"));
  expect_end(troupe({"eval", "sft/latest", "--episodes", "3"}), 0, {"3 episodes of arm7/reach-v1"});
  ASSERT_TRUE(succeeded(
      troupe({"run", "rl_arm7_reach_grpo_flow", "model.init.path=sft/latest/checkpoints/latest", "job.run_root=grpo",
              "policy.hidden=[32]", "env.num_envs=16", "env.blocks=2", "training.global_batch_size=80",
              "training.micro_batch_size=80", "training.steps=2", "eval.episodes=2", "metrics.every=1"})));
  expect_end(troupe({"eval", "grpo/latest", "--episodes", "3", "--compare", "sft/latest"}), 0, {"McNemar"});
}

TEST_F(ImitationTest, APolicyIsClonedFromVideosAndGoesOnWithACriticThatKnowsMore) {
  ASSERT_TRUE(succeeded(troupe({"record", "arm7/reach-v1", "--out", "data/arm7-reach-views", "--episodes", "9",
                                "--cameras", "front,side", "--image-size", "32"})));
  const Words small = {"env.options.image_size=32", "policy.hidden=[32]", "policy.cnn_channels=[4, 4, 4]",
                       "metrics.every=1"};
  expect_end(troupe(Words{"run", "rl_arm7_reach_pixels_sft", "algorithm.name=ppo", "job.run_root=sft",
                          "training.steps=12", "checkpoint.interval=6", "eval.every=6", "training.global_batch_size=16",
                          "training.micro_batch_size=16"} +
                    small),
             0, {"RUN COMPLETE"});
  const auto losses = curve("sft", "train/loss");
  EXPECT_LT(losses.rbegin()->second, losses.begin()->second);
  expect_end(troupe({"eval", "sft/latest", "--episodes", "2"}), 0, {"2 episodes of arm7/reach-v1"});
  expect_end(troupe(Words{"run", "rl_arm7_reach_pixels_ppo", "model.init.path=sft/latest/checkpoints/latest",
                          "job.run_root=ppo", "env.num_envs=8", "env.blocks=2", "training.global_batch_size=40",
                          "training.micro_batch_size=40", "training.steps=2", "eval.episodes=2"} +
                    small),
             0, {"RUN COMPLETE"});
  expect_end(troupe({"eval", "ppo/latest", "--episodes", "3", "--compare", "sft/latest"}), 0, {"McNemar"});
  // a camera that was not recorded
  expect_end(troupe(Words{"run", "rl_arm7_reach_pixels_sft", "data.sets=data/arm7-reach", "job.run_root=none"}), 2, {},
             {"observation.images.front", "--cameras"});
}

TEST_F(ImitationTest, APolicyIsToldTheTasksThatWereRecordedAndThenWhatTheSimulatorTells) {
  const Words told = {"env.options.instruction=true", "policy.text=words"};
  expect_end(clone("sft", told + Words{"training.steps=4", "checkpoint.interval=4", "eval.every=0"}), 0,
             {"RUN COMPLETE"});
  expect_end(troupe({"eval", "sft/latest", "--episodes", "2"}), 0, {"2 episodes of arm7/reach-v1"});
  expect_end(troupe(Words{"run", "rl_arm7_reach_grpo_flow", "model.init.path=sft/latest/checkpoints/latest",
                          "job.run_root=grpo", "policy.hidden=[32]", "env.num_envs=16", "env.blocks=2",
                          "training.global_batch_size=80", "training.micro_batch_size=80", "training.steps=2",
                          "eval.episodes=2", "metrics.every=1"} +
                    told),
             0, {"RUN COMPLETE"});
  expect_end(clone("none", {"policy.text=words"}), 2, {}, {"policy.text is words; the environment tells no text"});
}

TEST_F(ImitationTest, ThePathsOfARecipeAreResolvedBeforeTheRunBeginsAndOnce) {
  ASSERT_TRUE(succeeded(clone("runs")));
  const Words words = {"run",
                       "rl_arm7_reach_grpo_flow",
                       "policy.hidden=[32]",
                       "env.num_envs=16",
                       "env.blocks=2",
                       "training.global_batch_size=80",
                       "training.micro_batch_size=80",
                       "training.steps=400",
                       "checkpoint.interval=1",
                       "eval.episodes=2",
                       "metrics.every=1"};
  const std::string sft = std::filesystem::canonical(dir_ / "runs/latest");
  Program job(words, {.cwd = dir_.path(), .env = {}});
  ASSERT_TRUE(job.wait_for_text("iteration   3/400")) << job.so_far().text();
  job.send_signal(SIGKILL);
  job.wait();
  EXPECT_THAT(text_of(dir_ / "runs/latest/config.resolved.yaml"),
              HasSubstr("path: " + sft + "/checkpoints/step_000020"));
  // runs/latest is the killed run now; the recipe's runs/latest/checkpoints/latest would be its own checkpoint.
  expect_end(troupe(words + Words{"training.steps=4", "--resume", "auto"}), 0, {"resuming at step", "RUN COMPLETE"});
  expect_end(troupe(words + Words{"training.steps=1", "--resume", "never", "model.init.path=rl-arm7-reach-sft"}), 0,
             {"RUN COMPLETE"});
  EXPECT_THAT(text_of(dir_ / "runs/latest/config.resolved.yaml"),
              HasSubstr("path: " + sft + "/checkpoints/step_000020"))
      << "a job's name is as good as a folder";
  expect_end(troupe(words + Words{"--resume", "never", "model.init.path=nobody"}), 2, {},
             {"model.init.path", "nobody"});
}

TEST_F(ImitationTest, WeightsOfAnotherShapeAreRefusedBeforeARunBegins) {
  ASSERT_TRUE(succeeded(clone("runs", {"training.steps=2", "checkpoint.interval=2", "eval.every=0"})));
  const std::string latest = std::filesystem::canonical(dir_ / "runs/latest");
  expect_end(troupe({"run", "rl_arm7_reach_grpo_flow"}), 2, {}, {"model.init.path", "tensor '"});
  expect_end(clone("runs", {"policy.hidden=[48]", "model.init={mode: checkpoint, path: runs/latest}"}), 2, {},
             {"model.init.path", "does not fit this model"});
  EXPECT_EQ(std::filesystem::canonical(dir_ / "runs/latest"), latest);
  expect_end(troupe({"plan", "rl_arm7_reach_grpo_flow"}), 0, {"OK (exit 0)"}, {"warning: model.init.path", "tensor '"});
}

TEST_F(ImitationTest, TwoHalvesOnTwoRanksEqualTheWholeToTheBit) {
  const Words ranks = {"cluster.component_placement.learner=0:0-1", "cluster.component_placement.decoder=0:0-1"};
  ASSERT_TRUE(succeeded(clone("whole", ranks)));
  ASSERT_TRUE(succeeded(clone("halves", ranks + Words{"training.steps=10"})));
  expect_end(clone("halves", ranks + Words{"--resume", "auto"}), 0, {"resuming at step 10"});
  EXPECT_EQ(state_of("whole"), state_of("halves"));
}

TEST_F(ImitationTest, WhatDoesNotFitIsRefusedByName) {
  const auto refused = [&](const Words& words) {
    const ProgramEnd end = clone("runs", words);
    EXPECT_NE(end.exit_code, 0) << end.text();
    EXPECT_FALSE(std::filesystem::exists(dir_ / "runs/latest")) << "nothing has begun";
    return end.err;
  };
  EXPECT_THAT(refused({"data.sets=[nowhere]"}), HasSubstr("nowhere"));
  EXPECT_THAT(refused({"env.id=arm7/lift-v1"}), HasSubstr("'observation.state' has 31 numbers"));
  EXPECT_THAT(refused({"policy.kind=mlp"}), HasSubstr("policy.kind"));
  EXPECT_THAT(refused({"env.id=arm7/reech-v1"}), HasSubstr("arm7/reach-v1"));
  EXPECT_THAT(refused({"data.eval_episodes=[77]"}), HasSubstr("episode 77"));
  EXPECT_THAT(refused({"rollout.normalize_obs=true"}), HasSubstr("rollout.normalize_obs"));
}

}  // namespace
}  // namespace troupe::app
