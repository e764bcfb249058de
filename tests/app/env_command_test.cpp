// `troupe env`, and jobs whose environment only simulators can make: far-v1, which has an action mask and a field that
// only critics read.
#include "tests/app/rl_fixture.h"

namespace troupe::app {
namespace {

using ::testing::HasSubstr;

class EnvCommandTest : public RlRunTest {
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

TEST_F(EnvCommandTest, TheListHasEveryEnvironment) {
  const ProgramEnd end = troupe({"env", "list"});
  expect_end(end, 0, {"CartPole-v1 ", "balance a pole", "arm7/lift-v1"});
  const auto list = nlohmann::json::parse(troupe({"env", "list", "--json"}).out);
  EXPECT_EQ(list.at(0).at("id"), "CartPole-v1");
  EXPECT_THAT(list.at(0).at("what").get<std::string>(), HasSubstr("balance a pole"));
}

TEST_F(EnvCommandTest, ADescriptionSaysWhatIsObservedAndTaken) {
  expect_end(troupe({"env", "describe", "CartPole-v1"}), 0,
             {"state  f32 [4], any", "one of 2 choices", "500 at most, 50 a second", "mean return 475", "digest    "});
  const ProgramEnd pixel = troupe({"env", "describe", "arm7/lift-v1", "profile=pixel", "env.options.image_size=48"});
  expect_end(pixel, 0,
             {"rgb.front    u8 [48, 48, 3], 0 to 255", "8 numbers, -1 to 1 (0.10 rad, gripper)", "success   is told"});
  const ProgramEnd json =
      troupe({"env", "describe", "CartPole-v1", "max_episode_steps=9", "--json", "--out", "c.json"});
  EXPECT_EQ(nlohmann::json::parse(json.out).at("max_steps"), 9);
  EXPECT_EQ(text_of(dir_ / "c.json"), json.out);
}

TEST_F(EnvCommandTest, MistakesNameTheNearest) {
  expect_end(troupe({"env", "describe", "CartPol-v1"}), 2, {}, {"did you mean 'CartPole-v1'?"});
  expect_end(troupe({"env", "describe", "arm7/lift-v1", "profile=pixels"}), 2, {}, {"pixel"});
  expect_end(troupe({"env", "describe", "CartPole-v1", "fast"}), 2, {}, {"'fast'; wanted an option"});
  EXPECT_EQ(troupe({"env"}).exit_code, 2);
}

TEST_F(EnvCommandTest, AnEnvironmentThatOnlySimulatorsCanMakeIsPlannedTrainedAndResumed) {
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

TEST_F(EnvCommandTest, ASimulatorOfAnotherEnvironmentIsRefusedWithWhatDiffers) {
  ASSERT_TRUE(succeeded(far({"env", "describe", "far-v1", "--out", "far.json"}, {{"FAR_ENV_SIZE", "5"}})));
  const ProgramEnd end = far(far_job("run", {kSpec, "training.steps=2"}));
  EXPECT_EQ(end.exit_code, 4) << end.text();
  EXPECT_THAT(end.text(), HasSubstr("far-v1: observation[0].shape[0] is 3, the run's env_spec.json has 5"));
}

TEST_F(EnvCommandTest, ARunThatGoesOnRefusesAnotherDescription) {
  ASSERT_TRUE(succeeded(far({"env", "describe", "far-v1", "--out", "far.json"})));
  ASSERT_TRUE(succeeded(far(far_job("run", {kSpec, "training.steps=1"}))));
  ASSERT_TRUE(succeeded(far({"env", "describe", "far-v1", "--out", "far.json"}, {{"FAR_ENV_SIZE", "5"}})));
  expect_end(far(far_job("run", {kSpec, "training.steps=2", "--resume", "auto"})), 2, {},
             {"env.spec: far.json: far-v1: observation[0].shape[0] is 5", "env_spec.json has 3"});
}

}  // namespace
}  // namespace troupe::app
