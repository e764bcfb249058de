// Jobs whose environment only simulators can make: far-v1, which has an action mask and a field that only critics read.
#include "tests/app/rl_fixture.h"

namespace troupe::app {
namespace {

using ::testing::HasSubstr;

class DescribedEnvTest : public RlRunTest {
 protected:
  static constexpr const char* kSpec = "env.spec=far.json";

  ProgramEnd far(const Words& words, std::map<std::string, std::string> env = {}) const {
    return run_program(words,
                       {.program = FAR_ENV_PROGRAM, .cwd = dir_.path(), .env = std::move(env), .deadline = 150s});
  }
  /// A few steps of far-v1, every actor a process of its own.
  Words far_job(const std::string& verb, const Words& more = {}) const {
    return Words{verb,
                 "rl_cartpole_ppo",
                 "env.id=far-v1",
                 "env.num_envs=4",
                 "env.blocks=2",
                 "job.run_root=runs",
                 "rollout.steps=8",
                 "training.global_batch_size=32",
                 "training.micro_batch_size=32",
                 "checkpoint.interval=1",
                 "eval.episodes=1",
                 "cluster.isolation.env=process",
                 "cluster.isolation.rollout=process",
                 "cluster.isolation.learner=process",
                 "cluster.isolation.checkpointer=process"} +
           more;
  }
};

TEST_F(DescribedEnvTest, AnEnvironmentThatOnlySimulatorsCanMakeIsPlannedTrainedAndResumed) {
  expect_end(far(far_job("plan", {kSpec})), 2, {}, {"env.spec", "far.json"});
  ASSERT_TRUE(succeeded(far({"env", "describe", "far-v1", "--out", "far.json"})));
  expect_end(far(far_job("plan", {kSpec})), 0, {"OK"});
  ASSERT_TRUE(succeeded(far(far_job("run", {kSpec, "training.steps=2"}))));
  expect_end(far({"env", "describe", "far-v1"}), 0,
             {"allowed  u8 [3], any, action_mask", "seed     f64 [], any, critic"});
  EXPECT_EQ(text_of(dir_ / "runs/latest/env_spec.json"), text_of(dir_ / "far.json"));
  EXPECT_EQ(text_of(dir_ / "runs/latest/checkpoints/latest/env_spec.json"), text_of(dir_ / "far.json"));
  // without env.spec: the run keeps its own description
  ASSERT_TRUE(succeeded(far(far_job("run", {"training.steps=4", "--resume", "auto"}))));
  for (const auto& [step, lost] : curve("runs", "env/lost_rows")) EXPECT_EQ(lost, 0) << "a masked action was taken";
  EXPECT_EQ(curve("runs", "env/lost_rows").size(), 4U);
  expect_end(far({"verify", "--run-root", "runs"}), 0, {"committed step 4", "lost 0"});
  expect_end(far({"export", "runs/latest", "--out", "policy"}), 0, {"exported"});
}

TEST_F(DescribedEnvTest, ASimulatorOfAnotherEnvironmentIsRefusedWithWhatDiffers) {
  ASSERT_TRUE(succeeded(far({"env", "describe", "far-v1", "--out", "far.json"}, {{"FAR_ENV_SIZE", "5"}})));
  const ProgramEnd end = far(far_job("run", {kSpec, "training.steps=2"}));
  EXPECT_EQ(end.exit_code, 4) << end.text();
  EXPECT_THAT(end.text(), HasSubstr("far-v1: observation[0].shape[0] is 3, the run's env_spec.json has 5"));
}

TEST_F(DescribedEnvTest, ARunThatGoesOnRefusesAnotherDescription) {
  ASSERT_TRUE(succeeded(far({"env", "describe", "far-v1", "--out", "far.json"})));
  ASSERT_TRUE(succeeded(far(far_job("run", {kSpec, "training.steps=1"}))));
  ASSERT_TRUE(succeeded(far({"env", "describe", "far-v1", "--out", "far.json"}, {{"FAR_ENV_SIZE", "5"}})));
  expect_end(far(far_job("run", {kSpec, "training.steps=2", "--resume", "auto"})), 2, {},
             {"env.spec: far.json: far-v1: observation[0].shape[0] is 5", "env_spec.json has 3"});
}

}  // namespace
}  // namespace troupe::app
