// A DreamZero that learns in an environment and acts on devices, on the stand-ins of NVIDIA's libraries.
#include "tests/app/device_fixture.h"

namespace troupe::app {
namespace {

class DeviceActingTest : public DeviceRunTest {
 protected:
  static Words thin() { return {"model.dit.dim=32", "model.dit.num_heads=2", "model.dit.ffn_dim=32"}; }
  void SetUp() override {
    DeviceRunTest::SetUp();
    expect_end(troupe({"record", "arm7/reach-v1", "--out", "data/arm7-reach-front", "--episodes", "3", "--cameras",
                       "front", "--seed", "3", "--image-size", "64"}),
               0);
    expect_end(troupe(Words{"run", "sft_arm7_reach_tiny", "training.steps=2", "checkpoint.interval=2", "eval.every=2",
                            "training.global_batch_size=4", "training.micro_batch_size=2", "data.eval_episodes=[2]"} +
                      thin()),
               0);
  }
  std::string log_of(const std::string& actor) const {
    std::ifstream log(dir_ / ("devices/latest/logs/" + actor + ".log"));
    return {std::istreambuf_iterator<char>(log), {}};
  }
  /// Two iterations of four environments, which call the policy twice; who acts sits where `placed` says.
  ProgramEnd learn(const std::string& root, const std::string& placed, const Environment& machine,
                   const Words& overrides = {}) const {
    return troupe(
        Words{"run", "rl_dreamzero_tiny_arm7", "job.run_root=" + root,
              "model.init.path=" + (dir_ / "runs/arm7-reach-tiny/checkpoints/best"),
              "cluster.component_placement.rollout=" + placed, "cluster.component_placement.evaluator=" + placed,
              "env.num_envs=4", "env.blocks=2", "env.group_size=2", "env.max_episode_steps=16",
              "env.options.image_size=64", "env.options.sparse=false", "rollout.steps=16",
              "algorithm.policy_gradient.update_epochs=1", "training.steps=2", "training.global_batch_size=8",
              "training.micro_batch_size=8", "checkpoint.interval=2", "eval.episodes=2"} +
            thin() + overrides,
        machine);
  }
};

TEST_F(DeviceActingTest, RolloutWorkersAndTheEvaluatorActAsOnCores) {
  expect_end(learn("cores", "{node_group: node, placement: \"0\"}", {}), 0);
  const auto end = learn("devices", "0", machine("H200"));
  expect_end(end, 0, {"RUN COMPLETE"});
  EXPECT_EQ(findings(), "");
  EXPECT_THAT(log_of("rollout-0"), ::testing::HasSubstr("rollout/0 computes on device 0"));
  EXPECT_THAT(log_of("evaluator-0"), ::testing::HasSubstr("evaluator/0 computes on device 0"));
  // the learner on cores finds the densities that the device drew from
  for (const auto& [step, ratio] : curve("train/actor/ratio", "devices")) EXPECT_NEAR(ratio, 1, 1e-3) << step;
  const auto cores = curve("env/return", "cores"), devices = curve("env/return", "devices");
  ASSERT_FALSE(cores.empty());
  for (const auto& [step, value] : cores) EXPECT_NEAR(devices.at(step), value, 1e-2) << "iteration " << step;
}

TEST_F(DeviceActingTest, LearnersShareTheDeviceAndLearnAsOnCores) {
  expect_end(learn("cores", "{node_group: node, placement: \"0\"}", {}), 0);
  expect_end(learn("devices", "0", machine("H200"), {"cluster.component_placement.learner=0"}), 0, {"RUN COMPLETE"});
  EXPECT_EQ(findings(), "");
  EXPECT_THAT(log_of("learner-0"), ::testing::HasSubstr("learner/0 computes on device 0"));
  for (const char* name : {"train/actor/ratio", "train/actor/grad_norm", "train/actor/policy_loss_abs"}) {
    const auto cores = curve(name, "cores"), devices = curve(name, "devices");
    ASSERT_EQ(cores.size(), 2U) << name;
    for (const auto& [step, value] : cores)
      EXPECT_NEAR(devices.at(step), value, 1e-2 * std::abs(value)) << name << ", iteration " << step;
  }
}

TEST_F(DeviceActingTest, AKilledRolloutWorkerComesBackToItsDevice) {
  auto struck = machine("H200");
  struck["TROUPE_FAULT"] = "rollout.item@rollout/0#0:kill";
  const auto end = learn("runs", "0", struck, {"cluster.restart.backoff_initial_s=0.1"});
  expect_end(end, 0, {"RUN COMPLETE", "restarts 1"});
  EXPECT_EQ(findings(), "");
}

}  // namespace
}  // namespace troupe::app
