// Whole jobs of reinforcement learning through the program: what they leave, and that the same seeds give the same
// bits.
#include <fmt/format.h>

#include <algorithm>

#include "tests/app/rl_fixture.h"

namespace troupe::app {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// A short job of one algorithm.
struct ShortJob {
  const char* name;
  std::vector<std::string> words;
};
void PrintTo(const ShortJob& job, std::ostream* out) { *out << job.name; }

class RlBitsTest : public RlRunTest, public ::testing::WithParamInterface<ShortJob> {
 protected:
  /// Who steps environments (with workers that are processes, or threads), how many rollout workers and threads that
  /// learn.
  bool runs(const std::string& root, const char* steps, const char* workers, const char* learner_threads) const {
    const std::string rollout = std::string(steps) == "process" ? "process" : "thread";
    return succeeded(troupe(Words{"run"} + GetParam().words +
                            Words{"job.run_root=" + (dir_ / root), "algorithm.deterministic=true", "training.steps=4",
                                  "checkpoint.interval=2", "eval.episodes=2", "metrics.every=1",
                                  fmt::format("cluster.isolation={{env: {}, rollout: {}}}", steps, rollout),
                                  fmt::format("cluster.component_placement.rollout={}", workers),
                                  fmt::format("cluster.threads.learner={}", learner_threads)}));
  }
};

TEST_P(RlBitsTest, WhoStepsAndHowManyWorkersAndThreadsThereAreChangesNoBit) {
  ASSERT_TRUE(runs("processes", "process", "0:0", "1"));
  ASSERT_TRUE(runs("threads", "thread", "0:0-1", "2"));
  ASSERT_TRUE(runs("inline", "inline", "0:0-3", "7"));
  for (const char* other : {"threads", "inline"}) {
    EXPECT_TRUE(state_of("processes") == state_of(other)) << other;
    EXPECT_EQ(curve("processes", "train/loss"), curve(other, "train/loss")) << other;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Algorithms, RlBitsTest,
    ::testing::Values(ShortJob{"ppo",
                               {"rl_cartpole_ppo", "rollout.steps=32", "training.global_batch_size=64",
                                "training.micro_batch_size=64"}},
                      ShortJob{"grpo",
                               {"rl_reach_grpo", "env.num_envs=32", "training.global_batch_size=104",
                                "training.micro_batch_size=104"}},
                      ShortJob{"sac",
                               {"rl_pendulum_sac", "rollout.commit_every=128", "algorithm.sac.learning_starts=128",
                                "training.global_batch_size=64", "training.micro_batch_size=64"}}),
    [](const auto& job) { return std::string(job.param.name); });

TEST_F(RlRunTest, LeavesItsCurveItsTableAndALedgerThatBalances) {
  expect_end(run("runs"), 0, {"RUN COMPLETE", "evaluated 4 episodes of CartPole-v1", "bottleneck: "});
  EXPECT_TRUE(std::filesystem::exists(dir_ / "runs/latest/return.png"));
  EXPECT_THAT(verified("runs"), HasSubstr("48 positions  trained 48  void 0  lost 0  doubled 0"))
      << "8 blocks in each of 6 iterations";
  EXPECT_EQ(curve("runs", "env/return").size(), 6u);
  EXPECT_EQ(curve("runs", "train/actor/approx_kl").size(), 6u);
}

TEST_F(RlRunTest, DeterministicRunsAreEqualBitForBitAtAnyPoolSize) {
  const Words deterministic = {"algorithm.deterministic=true", "training.steps=4"};
  ASSERT_TRUE(succeeded(run("a", deterministic)));
  ASSERT_TRUE(succeeded(run("b", deterministic + Words{"cluster.component_placement.env=0:0-2",
                                                       "cluster.component_placement.rollout=0:0-1"})));
  EXPECT_EQ(state_of("a"), state_of("b"));
  EXPECT_EQ(curve("a", "train/loss"), curve("b", "train/loss"));
}

TEST_F(RlRunTest, APolicyWithAMemoryIsEqualBitForBitAtAnyPoolSizeAndAfterAResume) {
  const Words memory = {"policy.memory=gru", "policy.memory_width=16", "algorithm.deterministic=true"},
              four = memory + Words{"training.steps=4"};
  ASSERT_TRUE(succeeded(run("a", four)));
  ASSERT_TRUE(succeeded(
      run("b", four + Words{"cluster.component_placement.env=0:0-2", "cluster.component_placement.rollout=0:0-1"})));
  EXPECT_EQ(state_of("a"), state_of("b"));
  ASSERT_TRUE(succeeded(run("a", memory + Words{"training.steps=6", "--resume", "auto"})));
  EXPECT_THAT(verified("a"), HasSubstr("48 positions  trained 48  void 0  lost 0  doubled 0"));
}

TEST_F(RlRunTest, WholeSequencesOfAMemoryAreJudgedAsTheyWereActed) {
  // weights that hardly move: a sequence with another's memory, or a step at another's place, would have other ratios
  ASSERT_TRUE(succeeded(
      run("runs", {"env.id=tmaze-v1", "policy.memory=gru", "optimizer.lr=1e-12", "training.micro_batch_size=32",
                   "algorithm.policy_gradient.update_epochs=3", "algorithm.policy_gradient.value_clip=1e-4"})));
  const auto kl = curve("runs", "train/actor/kl_k3"), moved = curve("runs", "train/critic/value_clip_ratio");
  EXPECT_EQ(kl.size(), 6u);
  for (const auto& [step, divergence] : kl) EXPECT_LT(std::abs(divergence), 1e-9) << step;
  for (const auto& [step, share] : moved) EXPECT_EQ(share, 0) << step;
}

TEST_F(RlRunTest, RolloutsActWithThePublishedAverage) {
  // an average that keeps nothing of what it was is the weights
  const Words deterministic = {"algorithm.deterministic=true", "training.steps=3"}, published = {"ema.publish=true"};
  const Words averaged = deterministic + Words{"ema.decay=1e-30"}, slow = deterministic + Words{"ema.decay=0.9"};
  ASSERT_TRUE(succeeded(run("a", averaged)));
  ASSERT_TRUE(succeeded(run("b", averaged + published)));
  EXPECT_EQ(state_of("a"), state_of("b"));
  ASSERT_TRUE(succeeded(run("c", slow)));
  EXPECT_EQ(curve("a", "train/loss"), curve("c", "train/loss")) << "an average that is not published changes nothing";
  ASSERT_TRUE(succeeded(run("d", slow + published)));
  EXPECT_NE(curve("a", "train/loss"), curve("d", "train/loss"));
}

TEST_F(RlRunTest, AScriptedScheduleOfStaleRolloutsIsEqualBitForBit) {
  const Words stale = {"algorithm.deterministic=true", "algorithm.name=decoupled_ppo", "rollout.staleness=2",
                       "training.steps=5"};
  ASSERT_TRUE(succeeded(run("a", stale)));
  ASSERT_TRUE(succeeded(run("b", stale)));
  EXPECT_EQ(state_of("a"), state_of("b"));
}

TEST_F(RlRunTest, VtraceJudgesStaleRolloutsWithThePresentCritic) {
  // With one minibatch an iteration a value differs from its old one only where another critic gave that.
  const auto largest_share_moved = [&](const std::string& algorithm) {
    EXPECT_TRUE(succeeded(
        run(algorithm, {"algorithm.name=" + algorithm, "algorithm.deterministic=true", "rollout.staleness=2",
                        "training.global_batch_size=512", "training.micro_batch_size=512", "optimizer.lr=0.01",
                        "algorithm.policy_gradient.update_epochs=1", "algorithm.policy_gradient.advantage_norm=none",
                        "algorithm.policy_gradient.value_clip=1e-3"})));
    double largest = 0;
    for (const auto& [step, share] : curve(algorithm, "train/critic/value_clip_ratio"))
      largest = std::max(largest, share);
    return largest;
  };
  EXPECT_EQ(largest_share_moved("vtrace"), 0.0);
  EXPECT_GT(largest_share_moved("decoupled_ppo"), 0.9) << "its old values are those of collection";
}

TEST_F(RlRunTest, AResumedRunOfWholeEpisodesEqualsAnUninterruptedOne) {
  // With episodes that begin with the round, nothing but the checkpoint carries over.
  const Words whole = {"algorithm.deterministic=true", "env.reset_mode=episode", "rollout.normalize_obs=true"};
  ASSERT_TRUE(succeeded(run("a", whole)));
  ASSERT_TRUE(succeeded(run("b", whole + Words{"training.steps=4", "lr_scheduler.total_steps=6"})));
  expect_end(run("b", whole + Words{"--resume", "auto", "lr_scheduler.total_steps=6"}), 0, {"resuming at step 4"});
  EXPECT_EQ(state_of("a"), state_of("b"));
}

TEST_F(RlRunTest, AResumedRunMakesTheLastEvaluationThatIsMissing) {
  auto job = start("runs", {"eval.episodes=1000000"});
  ASSERT_TRUE(job->wait_output(iteration(6))) << job->output();
  job->kill(SIGTERM);
  ASSERT_EQ(job->wait(kRunDeadline), 75) << job->output();
  EXPECT_TRUE(curve("runs", "eval/return").empty());
  expect_end(run("runs", {"--resume", "auto"}), 0,
             {"resuming at step 6", "RUN COMPLETE", "evaluated 4 episodes of CartPole-v1"});
  EXPECT_EQ(curve("runs", "eval/return").size(), 1u);
}

TEST_F(RlRunTest, ALastEvaluationThatDoesNotComeIsLostAndTheJobIsDone) {
  expect_end(run("runs", {"eval.episodes=1000000", "eval.timeout_s=1"}), 0, {"RUN COMPLETE", "eval.timeout_s"});
  EXPECT_EQ(curve("runs", "eval/lost").at(6), 1000000);
}

TEST_F(RlRunTest, TwoLearnerRanksShareBlocksAndBalance) {
  ASSERT_TRUE(succeeded(run("runs", {"cluster.component_placement.learner=0:0-1", "training.micro_batch_size=32",
                                     "rollout.normalize_obs=true", "rollout.normalize_reward=true"})));
  EXPECT_THAT(verified("runs"), HasSubstr("trained 48  void 0  lost 0  doubled 0"));
}

TEST_F(RlRunTest, OffPolicyTransitionsBalanceAndSurviveAResume) {
  const Words words = small_sac() + Words{"eval.episodes=2"};
  ASSERT_TRUE(succeeded(troupe(words + Words{"training.steps=4"})));
  EXPECT_THAT(verified("runs"),
              HasSubstr("transitions: produced 512 = resident 288 + evicted 224 + lost 0; 0 records out of balance"));
  ASSERT_TRUE(succeeded(troupe(words + Words{"training.steps=6", "--resume", "auto"})));
  EXPECT_THAT(verified("runs"), HasSubstr("transitions: produced 768 = "));
  EXPECT_THAT(verified("runs"), HasSubstr("updates 640"));
}

TEST_F(RlRunTest, AShapedRewardIsTrainedOnAndTheEnvironmentsOwnReported) {
  const Words shaped = {"env.id=reach-v1", "env.reward.coef=0", "env.reward.step_penalty=2",
                        "env.reward.model={name: goal_distance, options: {first: 2, count: 2}}", "training.steps=2"};
  ASSERT_TRUE(succeeded(run("runs", shaped)));
  for (const auto& [step, reward] : curve("runs", "rollout/rewards")) EXPECT_LT(reward, -1) << step;
  for (const auto& [step, total] : curve("runs", "env/return")) EXPECT_GE(total, 0) << step;
  EXPECT_GE(curve("runs", "eval/return").rbegin()->second, 0);
}

TEST_F(RlRunTest, ARewardThatCannotBeComputedIsRefusedBeforeTheStart) {
  expect_end(run("runs", {"env.reward.model={name: success}"}), 2, {},
             {"env.reward.model.options of success", "CartPole-v1 does not say when its task is solved"});
}

TEST_F(RlRunTest, APlanSaysWhatAnItemAndAStepTakeOnceARunHasTimedThem) {
  const std::string cache = dir_ / "cache";
  const auto plan = [&](const Words& more = {}) {
    Words words = small("runs", more);
    words[0] = "plan";
    const ProgramEnd end =
        run_program(words, {.cwd = dir_.path(), .env = {{"XDG_CACHE_HOME", cache}}, .deadline = 60s});
    EXPECT_EQ(end.exit_code, 0) << end.text();
    return end.out;
  };
  // the same job, but that it does not say who steps
  const Words open = {"cluster.isolation.env=auto", "cluster.component_placement.env=null", "cluster.elastic.env=null"};
  EXPECT_THAT(plan(), HasSubstr("32 policy steps of 2 environments; what they take is not known"));
  EXPECT_THAT(plan(open), HasSubstr("environments  inline: CartPole-v1 is built in, and not timed here yet"));
  // who steps, and who collects, says so after two seconds: runs grow longer until one takes that
  std::string line, stepped;
  const auto lacks = [](const std::string& text, const char* words) { return text.find(words) == std::string::npos; };
  for (int steps = 120; steps <= 120 << 8; steps *= 4) {
    const std::string runs = fmt::format("runs-{}", steps);
    ASSERT_TRUE(succeeded(run_program(small(runs, {fmt::format("training.steps={}", steps)}),
                                      {.cwd = dir_.path(), .env = {{"XDG_CACHE_HOME", cache}}, .deadline = 150s})));
    line = plan(), stepped = plan(open);
    if (!lacks(line, "environments, about ") && !lacks(stepped, "(timed here on 2")) break;
  }
  EXPECT_THAT(line, HasSubstr("32 policy steps of 2 environments, about "));
  EXPECT_THAT(stepped, HasSubstr("environments  inline: a step of a block takes "));
}

TEST_F(RlRunTest, AJobThatLeavesItOpenSaysWhoStepsAndWhy) {
  Words words = small_sac();
  words[0] = "plan";
  const std::string built_in = "inline: Pendulum-v1 is built in, and not timed here yet";
  const std::map<std::string, std::string> cache = {{"XDG_CACHE_HOME", dir_ / "cache"}};
  const auto plan = [&](const Words& more) {
    const ProgramEnd end = run_program(words + more, {.cwd = dir_.path(), .env = cache, .deadline = 60s});
    EXPECT_EQ(end.exit_code, 0) << end.text();
    return end.out;
  };
  EXPECT_THAT(plan({}), AllOf(HasSubstr("  environments  " + built_in + " (cluster.isolation.env)\n"),
                              HasSubstr("steps its environments itself"), Not(HasSubstr("env -> rollout"))));
  EXPECT_THAT(plan({"cluster.elastic.env={max: 4}"}),
              AllOf(HasSubstr("  environments  process: cluster.elastic.env asks for simulators"),
                    HasSubstr("env -> rollout")));
  EXPECT_THAT(plan({"cluster.isolation.env=inline"}), Not(HasSubstr("  environments  ")));
  words[0] = "run";
  const auto run = [&](const Words& more) {
    return run_program(words + more, {.cwd = dir_.path(), .env = cache, .deadline = 150s});
  };
  expect_end(run({"training.steps=2", "eval.episodes=1"}), 0, {"environments " + built_in});
  EXPECT_THAT(testing::text_of(dir_ / "runs/latest/config.resolved.yaml"), HasSubstr("\n    env: inline  # default\n"));
  expect_end(run({"training.steps=4", "eval.episodes=1", "--resume", "auto"}), 0,
             {"environments inline: as the run began"});
  expect_end(run({"training.steps=6", "eval.episodes=1", "--resume", "auto", "cluster.isolation.env=process"}), 0,
             {"RUN COMPLETE"});
}

TEST_F(RlRunTest, AnUnknownEnvironmentIsRefusedWithTheNearestName) {
  expect_end(run("runs", {"env.id=CartPol-v1"}), 2, {}, {"env.id", "CartPole-v1"});
}

TEST_F(RlRunTest, AnOptionThatTheEnvironmentDoesNotHaveIsRefused) {
  expect_end(run("runs", {"env.options={gravity: 3}"}), 2, {}, {"gravity"});
}

TEST_F(RlRunTest, APolicyThatDoesNotFitTheActionsIsRefused) {
  expect_end(run("runs", {"algorithm.name=sac", "rollout.commit_every=512"}), 2, {}, {"algorithm.name"});
}

}  // namespace
}  // namespace troupe::app
