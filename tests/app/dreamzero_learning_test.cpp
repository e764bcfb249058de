// DreamZero that learns in an environment: recorded, fine-tuned, improved, played, served, exported.
#include <filesystem>

#include "tests/app/rl_fixture.h"
#include "tests/support/safetensors_bytes.h"

namespace troupe::app {
namespace {

class DreamzeroLearningTest : public RlRunTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(succeeded(troupe({"record", "arm7/reach-v1", "--out", "data/arm7-reach-front", "--episodes", "4",
                                  "--cameras", "front", "--seed", "3", "--image-size", "64"})));
    ASSERT_TRUE(succeeded(troupe({"run", "sft_arm7_reach_tiny", "job.run_root=" + (dir_ / "runs"), "training.steps=3",
                                  "checkpoint.interval=3", "eval.every=3", "training.global_batch_size=4",
                                  "training.micro_batch_size=2", "data.eval_episodes=[3]"})));
  }
  /// Two iterations of one minibatch: 8 environments, two policy calls an episode.
  Words learn(const Words& overrides = {}) const {
    return Words{"run",
                 "rl_dreamzero_tiny_arm7",
                 "job.run_root=" + (dir_ / "runs"),
                 "env.num_envs=8",
                 "env.blocks=2",
                 "env.group_size=4",
                 "env.max_episode_steps=16",
                 "env.options.image_size=64",
                 "env.options.sparse=false",
                 "rollout.steps=16",
                 "algorithm.policy_gradient.update_epochs=1",
                 "training.steps=2",
                 "training.global_batch_size=16",
                 "training.micro_batch_size=8",
                 "checkpoint.interval=2",
                 "eval.episodes=2"} +
           overrides;
  }
};

TEST_F(DreamzeroLearningTest, AFineTunedModelLearnsInTheEnvironmentOfItsRecordings) {
  ASSERT_TRUE(succeeded(troupe(learn())));
  const auto ratio = curve("runs", "train/actor/ratio"), norm = curve("runs", "train/actor/grad_norm");
  ASSERT_EQ(ratio.size(), 2u);
  for (const auto& [step, value] : ratio) EXPECT_NEAR(value, 1, 1e-3) << "of unchanged weights, iteration " << step;
  for (const auto& [step, value] : norm) EXPECT_GT(value, 0) << "iteration " << step;

  // against what it started from, each with pictures of its own size
  expect_end(troupe({"eval", "runs/latest", "--episodes", "1", "--compare", "arm7-reach-tiny"}), 0, {"McNemar"});
  expect_end(troupe({"eval", "arm7-reach-tiny", "--env", "arm7/reach-v1", "--episodes", "1", "--compare", "runs/latest",
                     "--sampler", "euler", "--steps", "2", "--instruction", "guide the arm to the green sphere"}),
             0, {"McNemar"});
  expect_end(troupe({"eval", "runs/latest", "--episodes", "1", "--instruction", "reach"}), 2, {},
             {"--instruction is what a fine-tuned DreamZero is told"});

  // its checkpoint stands alone
  std::filesystem::remove_all(dir_ / "runs/arm7-reach-tiny");
  expect_end(troupe({"eval", "runs/latest", "--episodes", "2"}), 0, {"2 episodes of arm7/reach-v1"});
  expect_end(troupe({"serve", "runs/latest", "--once-selftest"}), 0, {"self-test ok"});
  expect_end(troupe({"export", "runs/latest", "--format", "gear", "--out", "gear"}), 0, {"exported"});
  expect_end(troupe({"eval", "gear", "--env", "arm7/reach-v1", "--episodes", "1", "--sampler", "euler", "--steps", "2",
                     "--cfg-scale", "1", "--out", "of_export"}),
             0, {"1 episodes of arm7/reach-v1"});
}

TEST_F(DreamzeroLearningTest, AWindowOfSeveralCallsLearns) {
  ASSERT_TRUE(
      succeeded(troupe({"run", "sft_arm7_reach_tiny", "job.name=windows", "job.run_root=" + (dir_ / "runs"),
                        "training.steps=3", "checkpoint.interval=3", "eval.every=3", "training.global_batch_size=4",
                        "training.micro_batch_size=2", "data.eval_episodes=[3]", "data.window.chunks=2"})));
  ASSERT_TRUE(
      succeeded(troupe(learn({"model.init.path=windows", "data.window.chunks=2", "env.frame_offsets=[0, 4]"}))));
  const auto ratio = curve("runs", "train/actor/ratio"), norm = curve("runs", "train/actor/grad_norm");
  ASSERT_EQ(ratio.size(), 2u);
  for (const auto& [step, value] : ratio) EXPECT_NEAR(value, 1, 1e-3) << "of unchanged weights, iteration " << step;
  for (const auto& [step, value] : norm) EXPECT_GT(value, 0) << "iteration " << step;
  expect_end(troupe({"eval", "runs/latest", "--episodes", "1", "--compare", "windows"}), 0, {"McNemar"});
  expect_end(troupe({"serve", "runs/latest", "--once-selftest"}), 0, {"self-test ok"});
}

TEST_F(DreamzeroLearningTest, AdaptersLearnOnTheFrozenModelThatWasFineTuned) {
  const Words lora = {"model.train_architecture=lora", "model.lora.rank=2", "checkpoint.interval=1"};
  ASSERT_TRUE(succeeded(troupe(learn(lora + Words{"training.steps=1"}))));
  expect_end(troupe(learn(lora + Words{"--resume", "auto"})), 0, {"resuming at step 1"});
  const auto ratio = curve("runs", "train/actor/ratio"), norm = curve("runs", "train/actor/grad_norm");
  ASSERT_EQ(ratio.size(), 2u);
  for (const auto& [step, value] : ratio) EXPECT_NEAR(value, 1, 1e-3) << "of unchanged weights, iteration " << step;
  for (const auto& [step, value] : norm) EXPECT_GT(value, 0) << "iteration " << step;
  verified("runs");

  // what was frozen is the fine-tuned model's to the bit, and the adapters have moved
  const auto exported = [&](const std::string& run, const std::string& folder) {
    expect_end(troupe({"export", run, "--out", folder}), 0);
    return SafetensorsBytes(dir_ / (folder + "/model.safetensors"));
  };
  const auto before = exported("arm7-reach-tiny", "weights-before"), after = exported("runs/latest", "weights-after");
  const std::string q = "blocks.0.self_attn.q";
  EXPECT_EQ(after.at(q + ".weight").as<float>(), before.at(q + ".weight").as<float>());
  const auto b = after.at(q + ".lora_B.default.weight").as<float>();
  EXPECT_NE(b, std::vector<float>(b.size(), 0.0F));
  EXPECT_NE(after.at("action_decoder.layer2.W").as<float>(), before.at("action_decoder.layer2.W").as<float>());

  // its checkpoint stands alone, beside the run's base
  std::filesystem::remove_all(dir_ / "runs/arm7-reach-tiny");
  expect_end(troupe({"eval", "runs/latest", "--episodes", "1"}), 0, {"1 episodes of arm7/reach-v1"});
  expect_end(troupe({"serve", "runs/latest", "--once-selftest"}), 0, {"self-test ok"});
  expect_end(troupe({"export", "runs/latest", "--format", "gear", "--merge-lora", "--out", "gear"}), 0, {"exported"});
}

TEST_F(DreamzeroLearningTest, InBf16ItLearnsAdaptedOrWholeWithAReferencePolicy) {
  for (const std::string train : {"lora", "full"}) {
    SCOPED_TRACE(train);
    const Words words = {"model.train_architecture=" + train, "precision.param=bf16", "training.steps=1",
                         "checkpoint.interval=1", "algorithm.policy_gradient.kl_beta=0.01"};
    ASSERT_TRUE(succeeded(troupe(learn(words))));
    for (const auto& [step, value] : curve("runs", "train/actor/ratio")) {
      EXPECT_NEAR(value, 1, 0.1) << "calls and the training forward round differently, iteration " << step;
    }
    for (const auto& [step, value] : curve("runs", "train/actor/kl_loss")) EXPECT_NEAR(value, 0, 0.1);
    for (const auto& [step, value] : curve("runs", "train/actor/grad_norm")) EXPECT_GT(value, 0) << step;
    expect_end(troupe({"eval", "runs/latest", "--episodes", "1"}), 0, {"1 episodes of arm7/reach-v1"});
  }
}

TEST_F(DreamzeroLearningTest, WhatItCannotGoOnFromIsSaidBeforeAnythingStarts) {
  expect_end(troupe(learn({"model.init.path=nowhere"})), 2, {}, {"model.init.path", "nowhere"});
  expect_end(troupe(learn({"data.window.chunks=2"})), 2, {}, {"env.frame_offsets: is []"});
  expect_end(troupe(learn({"job.seed=7"})), 2, {}, {"job.seed: is 7"});
  expect_end(troupe(learn({"env.profile=views"})), 2, {}, {"env.id: arm7/reach-v1", "with 31 numbers"});
  expect_end(troupe({"plan", "rl_dreamzero_tiny_arm7", "model.init.path=nowhere"}), 0, {"OK (exit 0)"}, {"nowhere"});
}

}  // namespace
}  // namespace troupe::app
