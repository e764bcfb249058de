// A job whose environments are a class in Python, stepped by workers that simulators start.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string_view>

#include "tests/app/rl_fixture.h"

namespace troupe::app {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class BridgeJobTest : public RlRunTest {
 protected:
  Words on_line(const Words& overrides = {}) const {
    const std::string root = TROUPE_SOURCE_DIR;
    return Words{"run",
                 "rl_halfcheetah_ppo",
                 "job.run_root=" + (dir_ / "runs"),
                 "env.id=python:toy_envs:Line",
                 "env.bridge.python=python3",
                 "env.bridge.path=[" + root + "/tests/python," + root + "/.deps/clients]",
                 "env.bridge.workers=2",
                 "env.num_envs=8",
                 "env.blocks=2",
                 "rollout.steps=20",
                 "training.steps=20",
                 "training.global_batch_size=40",
                 "training.micro_batch_size=40",
                 "optimizer.lr=3e-3",
                 "checkpoint.interval=10",
                 "eval.episodes=4",
                 "metrics.every=1"} +
           overrides;
  }
};

TEST_F(BridgeJobTest, AKilledWorkerCostsRowsAndTheJobLearnsOn) {
  const std::string once = dir_ / "once";
  std::ofstream(once).put('x');
  const ProgramEnd end = troupe(on_line({"env.options.fault=kill", "env.options.at=11", "env.options.once=" + once}));
  ASSERT_EQ(end.exit_code, 0) << end.text();
  EXPECT_FALSE(std::filesystem::exists(once)) << "no worker was killed";
  double lost = 0;
  for (const auto& [step, rows] : curve("runs", "env/lost_rows")) lost = std::max(lost, rows);
  EXPECT_GE(lost, 1);
  const auto returns = curve("runs", "env/return");
  ASSERT_FALSE(returns.empty());
  EXPECT_GT(returns.rbegin()->second, returns.begin()->second);
  verified("runs");
}

TEST_F(BridgeJobTest, AgentsShareOnePolicyAndAreCountedAsEnvironments) {
  const Words team{"env.id=pettingzoo:toy_team", "env.options.walkers=2", "training.steps=4"};
  const ProgramEnd end = troupe(on_line(team));
  ASSERT_EQ(end.exit_code, 0) << end.text();
  EXPECT_EQ(curve("runs", "env/total_steps").rbegin()->second, 4 * 8 * 20);
  // ten passes over the rows of both agents in minibatches of 40
  EXPECT_EQ(curve("runs", "train/minibatches").rbegin()->second, 10 * 2 * 8 * 20 / 40);
  EXPECT_EQ(curve("runs", "eval/num_trajectories").rbegin()->second, 4);
  EXPECT_LE(curve("runs", "env/episode_len").rbegin()->second, 12);
  verified("runs");
  const ProgramEnd refused =
      troupe(on_line(team + Words{"algorithm.name=sac", "rollout.commit_every=160", "rollout.normalize_obs=false",
                                  "rollout.normalize_reward=false"}));
  EXPECT_EQ(refused.exit_code, 2) << refused.text();
  EXPECT_THAT(refused.text(), HasSubstr("algorithm.name is sac, which keeps transitions of one agent"));
}

/// The iteration that the job printed last.
int last_iteration(const std::string& output) {
  constexpr std::string_view kWord = "] iteration ";
  const std::size_t at = output.rfind(kWord);
  return at == std::string::npos ? 0 : std::stoi(output.substr(at + kWord.size()));
}

/// The running process, not in `struck`, that last began an episode of toy_envs.Line with a log. An episode of seed 0
/// is the probe of a worker that starts and does not count: a worker that is stopped there has minutes to answer.
std::optional<pid_t> newest_worker(const std::string& log, const std::set<pid_t>& struck) {
  std::optional<pid_t> newest;
  std::ifstream lines(log);
  pid_t process = 0;
  for (std::uint64_t seed = 0; lines >> seed >> process;) {
    if (seed != 0 && !struck.contains(process) && JobProcess::is_running(process)) newest = process;
  }
  return newest;
}

TEST_F(BridgeJobTest, TwentyKillsAndFiveStopsOfWorkersAndAPoolThatGrowsAndShrinksLoseNoPosition) {
  const std::string begun = dir_ / "begun";
  JobProcess job(on_line({"training.steps=200", "env.blocks=4", "env.bridge.workers=1", "env.step_timeout_s=6",
                          "checkpoint.interval=20", "eval.every=0", "env.options.log=" + begun}),
                 dir_ / "runs.log");
  std::set<pid_t> struck;
  for (int strike = 1; strike <= 25; ++strike) {
    if (strike == 8 || strike == 16) {
      const std::string pool = strike == 8 ? "4" : "2";
      EXPECT_TRUE(succeeded(troupe({"scale", "env=" + pool, "--run-root", dir_ / "runs"})));
      ASSERT_TRUE(job.wait_output("env is now " + pool + " by request")) << job.output();
    }
    // By the third iteration from here every block steps again: a worker that is stopped while it still makes the
    // environments of a block has minutes for it.
    ASSERT_TRUE(job.wait_output(iteration(last_iteration(job.output()) + 3))) << job.output();
    std::optional<pid_t> worker;
    ASSERT_TRUE(job.wait_until([&] { return (worker = newest_worker(begun, struck)).has_value(); }, kToolDeadline));
    struck.insert(*worker);
    ASSERT_EQ(::kill(*worker, strike % 5 == 0 ? SIGSTOP : SIGKILL), 0);
  }
  ASSERT_EQ(job.wait(kRunDeadline), 0) << job.output();
  EXPECT_THAT(verified("runs"), HasSubstr("lost 0  doubled 0"));
  EXPECT_THAT(job.output(), Not(HasSubstr("stuck")));
  for (const pid_t worker : struck) EXPECT_FALSE(JobProcess::is_running(worker));
}

TEST_F(BridgeJobTest, WhatPythonLacksIsSaidBeforeTheRunBegins) {
  const ProgramEnd end = troupe(on_line({"env.id=gymnasium:no_such_module:Nothing-v0"}));
  EXPECT_EQ(end.exit_code, 2) << end.text();
  EXPECT_THAT(end.text(), HasSubstr("-m pip install "));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "runs/rl-halfcheetah-ppo"));
}

TEST_F(BridgeJobTest, ARolloutWorkerDoesNotWaitForPythonItself) {
  const ProgramEnd end = troupe(on_line({"cluster.isolation.env=inline"}));
  EXPECT_EQ(end.exit_code, 2) << end.text();
  EXPECT_THAT(end.text(), HasSubstr("cluster.isolation.env is inline, and python:toy_envs:Line is stepped by Python"));
}

TEST_F(BridgeJobTest, WhereNothingIsSaidSimulatorsWaitForPythonAndThePlanSaysSo) {
  Words words = on_line();
  words[0] = "plan";
  expect_end(troupe(words), 0,
             {"  environments  process: python:toy_envs:Line is stepped by Python's workers", "env -> rollout"});
}

TEST_F(BridgeJobTest, TwoSimulatorsOfOneMachineAreRefusedOneAddress) {
  const ProgramEnd end =
      troupe(on_line({"env.bridge.bind=ipc://" + (dir_ / "s.sock"), "cluster.component_placement.env=0:0-1"}));
  EXPECT_EQ(end.exit_code, 2) << end.text();
  EXPECT_THAT(end.text(), HasSubstr("2 simulators are planned on node 0, and each wants an address of its own"));
}

}  // namespace
}  // namespace troupe::app
