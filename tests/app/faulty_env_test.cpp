// A job whose environment throws, crashes and hangs, in training and in evaluations.
#include <fstream>

#include "tests/app/rl_fixture.h"

namespace troupe::app {
namespace {

using ::testing::HasSubstr;

class FaultyEnvTest : public RlRunTest {
 protected:
  void SetUp() override { std::ofstream(dir_ / "counts") << std::string(64, '\0'); }
  ProgramEnd faulty(const Words& words) const {
    return run_program(words, {.program = FAULTY_ENV_PROGRAM,
                               .cwd = dir_.path(),
                               .env = {{"TROUPE_FAULTY_COUNTS", dir_ / "counts"}},
                               .deadline = 150s});
  }
};

TEST_F(FaultyEnvTest, EvaluationsLoseEpisodesAndTheJobLosesNothing) {
  const ProgramEnd end = faulty(
      {"run", "rl_cartpole_ppo", "job.run_root=" + (dir_ / "runs"), "env.id=faulty-v1", "env.step_timeout_s=2",
       "rollout.steps=64", "training.steps=50", "training.global_batch_size=512", "training.micro_batch_size=512",
       "algorithm.policy_gradient.update_epochs=1", "eval.every=1", "eval.episodes=8", "checkpoint.interval=1",
       "checkpoint.keep=1", "checkpoint.keep_best=eval/return", "metrics.every=10",
       // about ten simulators crash in a minute
       "cluster.restart.budget=1000", "cluster.restart.component_budget=1000", "cluster.restart.backoff_initial_s=0",
       "cluster.restart.backoff_max_s=0"});
  expect_end(end, 0, {"RUN COMPLETE", " lost"});
  EXPECT_THAT(end.text(), HasSubstr("env/0 killed by signal 11; restart"));
  EXPECT_EQ(curve("runs", "train/loss").size(), 50u);
  const auto lost = curve("runs", "eval/lost"), played = curve("runs", "eval/num_trajectories"),
             skipped = curve("runs", "eval/skipped");
  ASSERT_TRUE(lost.contains(50)) << "the last evaluation is awaited\n" << end.text();
  for (const auto& [step, count] : lost) {
    EXPECT_GE(count, 1) << "one seed always throws";
    EXPECT_EQ(count + played.at(step), 8) << step;
  }
  EXPECT_EQ(static_cast<double>(lost.size()) + skipped.at(50), 50);
  EXPECT_THAT(verified("runs"), HasSubstr("lost 0  doubled 0"));
}

}  // namespace
}  // namespace troupe::app
