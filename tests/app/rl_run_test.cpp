// Whole jobs of reinforcement learning through the program: what they leave, and that the same seeds give the same
// bits.
#include "tests/app/rl_fixture.h"

namespace troupe::app {
namespace {

using ::testing::HasSubstr;

TEST_F(RlRunTest, LeavesItsCurveItsTableAndALedgerThatBalances) {
  const ProgramEnd end = run("runs");
  ASSERT_TRUE(succeeded(end));
  EXPECT_THAT(end.out, HasSubstr("RUN COMPLETE"));
  EXPECT_THAT(end.out, HasSubstr("evaluation  4 episodes of CartPole-v1"));
  EXPECT_THAT(end.out, HasSubstr("bottleneck: "));
  EXPECT_TRUE(std::filesystem::exists(dir_ / "runs/latest/return.png"));
  EXPECT_THAT(verified("runs"), HasSubstr("48 positions  trained 48  void 0  lost 0  doubled 0"))
      << "8 blocks in each of 6 iterations";
  EXPECT_EQ(curve("runs", "env/return").size(), 6u);
  EXPECT_EQ(curve("runs", "train/actor/approx_kl").size(), 6u);
}

TEST_F(RlRunTest, DeterministicRunsAreEqualBitForBitAtAnyPoolSize) {
  const Words deterministic = {"algorithm.deterministic=true", "training.steps=4"};
  ASSERT_TRUE(succeeded(run("a", deterministic)));
  const ProgramEnd more = run(
      "b", deterministic + Words{"cluster.component_placement.env=0:0-2", "cluster.component_placement.rollout=0:0-1"});
  ASSERT_TRUE(succeeded(more));
  EXPECT_EQ(state_of("a"), state_of("b"));
  EXPECT_EQ(curve("a", "train/loss"), curve("b", "train/loss"));
}

TEST_F(RlRunTest, AScriptedScheduleOfStaleRolloutsIsEqualBitForBit) {
  const Words stale = {"algorithm.deterministic=true", "algorithm.name=decoupled_ppo", "rollout.staleness=2",
                       "training.steps=5"};
  const ProgramEnd first = run("a", stale);
  ASSERT_TRUE(succeeded(first));
  ASSERT_TRUE(succeeded(run("b", stale)));
  EXPECT_EQ(state_of("a"), state_of("b"));
}

TEST_F(RlRunTest, AResumedRunOfWholeEpisodesEqualsAnUninterruptedOne) {
  // With episodes that begin with the round, nothing but the checkpoint carries over.
  const Words whole = {"algorithm.deterministic=true", "env.reset_mode=episode", "rollout.normalize_obs=true"};
  ASSERT_TRUE(succeeded(run("a", whole)));
  ASSERT_TRUE(succeeded(run("b", whole + Words{"training.steps=4", "lr_scheduler.total_steps=6"})));
  const ProgramEnd rest = run("b", whole + Words{"--resume", "auto", "lr_scheduler.total_steps=6"});
  ASSERT_TRUE(succeeded(rest));
  EXPECT_THAT(rest.out, HasSubstr("resuming at step 4"));
  EXPECT_EQ(state_of("a"), state_of("b"));
}

TEST_F(RlRunTest, TwoLearnerRanksShareBlocksAndBalance) {
  const ProgramEnd end = run("runs", {"cluster.component_placement.learner=0:0-1", "training.micro_batch_size=32",
                                      "rollout.normalize_obs=true", "rollout.normalize_reward=true"});
  ASSERT_TRUE(succeeded(end));
  EXPECT_THAT(verified("runs"), HasSubstr("trained 48  void 0  lost 0  doubled 0"));
}

TEST_F(RlRunTest, OffPolicyTransitionsBalanceAndSurviveAResume) {
  const Words words = {"run",
                       "rl_pendulum_sac",
                       "job.run_root=" + (dir_ / "runs"),
                       "rollout.commit_every=128",
                       "algorithm.sac.learning_starts=128",
                       "training.global_batch_size=32",
                       "training.micro_batch_size=32",
                       "algorithm.sac.replay_capacity=300",
                       "eval.episodes=2",
                       "checkpoint.interval=2"};
  const ProgramEnd first = troupe(words + Words{"training.steps=4"});
  ASSERT_TRUE(succeeded(first));
  EXPECT_THAT(verified("runs"),
              HasSubstr("transitions: produced 512 = resident 288 + evicted 224 + lost 0; 0 records out of balance"));
  const ProgramEnd rest = troupe(words + Words{"training.steps=6", "--resume", "auto"});
  ASSERT_TRUE(succeeded(rest));
  EXPECT_THAT(verified("runs"), HasSubstr("transitions: produced 768 = "));
  EXPECT_THAT(verified("runs"), HasSubstr("updates 640"));
}

TEST_F(RlRunTest, AnUnknownEnvironmentIsRefusedWithTheNearestName) {
  const ProgramEnd end = run("runs", {"env.id=CartPol-v1"});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err, HasSubstr("env.id"));
  EXPECT_THAT(end.err, HasSubstr("CartPole-v1"));
}

TEST_F(RlRunTest, AnOptionThatTheEnvironmentDoesNotHaveIsRefused) {
  const ProgramEnd end = run("runs", {"env.options={gravity: 3}"});
  EXPECT_EQ(end.exit_code, 2) << end.text();
  EXPECT_THAT(end.err, HasSubstr("gravity"));
}

TEST_F(RlRunTest, APolicyThatDoesNotFitTheActionsIsRefused) {
  const ProgramEnd end = run("runs", {"algorithm.name=sac", "rollout.commit_every=512"});
  EXPECT_EQ(end.exit_code, 2) << end.text();
  EXPECT_THAT(end.err, HasSubstr("algorithm.name"));
}

}  // namespace
}  // namespace troupe::app
