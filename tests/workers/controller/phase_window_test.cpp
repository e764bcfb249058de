#include "workers/controller/phase_window.h"

#include <gtest/gtest.h>

namespace troupe::workers {
namespace {

using Metrics = std::map<std::string, double>;

/// Ten seconds of a rollout worker: 4 idle, 6 busy, in all of which it waits for simulators or steps for 3.
ProducerTimes rollout_times(bool is_inline) {
  return {.actor = "rollout/0",
          .idle_seconds = 4,
          .busy_seconds = 6,
          .simulate_seconds = is_inline ? 3.0 : 0.0,
          .policy_seconds = 1.5,
          .record_seconds = 0.5,
          .await_seconds = is_inline ? 0.0 : 3.0};
}
ProducerTimes simulator_times(double simulated) {
  return {.actor = "env/0",
          .idle_seconds = 10 - simulated - 1,
          .busy_seconds = simulated + 1,
          .simulate_seconds = simulated};
}
Metrics step_metrics() {
  return {{"time/step", 10},
          {"time/cal_adv_and_returns", 0.5},
          {"time/actor_training", 3},
          {"time/publish", 0.5},
          {"time/generate_rollouts", 5}};
}
void expect_whole(const PhaseShares& shares) {
  std::map<std::string, double> sums;
  for (const auto& [name, share] : named_shares(shares)) {
    EXPECT_GE(share, 0) << name;
    sums[name.substr(0, name.find('/'))] += share;
  }
  for (const auto& [role, sum] : sums) EXPECT_NEAR(sum, 1, 1e-12) << role;
}

TEST(PhaseWindowTest, RolloutWorkersThatStepTheirEnvironmentsSayEverything) {
  PhaseWindow window;
  window.add("rollout", rollout_times(true));
  const auto shares = window.end_step(step_metrics());
  ASSERT_TRUE(shares);
  expect_whole(*shares);
  EXPECT_FALSE(shares->simulators);
  EXPECT_DOUBLE_EQ(shares->rollout.simulate, 0.3);
  EXPECT_DOUBLE_EQ(shares->rollout.policy, 0.15);
  EXPECT_DOUBLE_EQ(shares->rollout.record, 0.05);
  EXPECT_DOUBLE_EQ(shares->rollout.hand_over, 0.1);
  EXPECT_DOUBLE_EQ(shares->rollout.wait, 0.4);
  EXPECT_DOUBLE_EQ(shares->learner.advantages, 0.05);
  EXPECT_DOUBLE_EQ(shares->learner.update, 0.3);
  EXPECT_DOUBLE_EQ(shares->learner.publish, 0.05);
  EXPECT_DOUBLE_EQ(shares->learner.other, 0.1);
  EXPECT_DOUBLE_EQ(shares->learner.wait, 0.5);
}

TEST(PhaseWindowTest, WaitingForSimulatorsIsSimulationForAsMuchAsTheySimulate) {
  PhaseWindow window;
  window.add("rollout", rollout_times(false));
  window.add("env", simulator_times(2));
  auto shares = window.end_step(step_metrics());
  ASSERT_TRUE(shares);
  expect_whole(*shares);
  EXPECT_DOUBLE_EQ(shares->rollout.simulate, 0.2) << "3 s slept, 2 s of them simulated";
  EXPECT_DOUBLE_EQ(shares->rollout.hand_over, 0.2);
  ASSERT_TRUE(shares->simulators);
  EXPECT_DOUBLE_EQ(shares->simulators->simulate, 0.2);
  EXPECT_DOUBLE_EQ(shares->simulators->hand_over, 0.1);
  EXPECT_DOUBLE_EQ(shares->simulators->wait, 0.7);
  window.add("rollout", rollout_times(false));
  window.add("env", simulator_times(9));
  shares = window.end_step(step_metrics());
  ASSERT_TRUE(shares);
  expect_whole(*shares);
  EXPECT_DOUBLE_EQ(shares->rollout.simulate, 0.3) << "no more than was slept";
  window.add("rollout", rollout_times(false));
  shares = window.end_step(step_metrics());
  ASSERT_TRUE(shares) << "simulators are as they last said";
  EXPECT_DOUBLE_EQ(shares->rollout.simulate, 0.3);
}

TEST(PhaseWindowTest, AWindowHasTheStepsUpToAReportOfRolloutWorkers) {
  PhaseWindow window;
  EXPECT_FALSE(window.end_step(step_metrics()));
  window.add("rollout", rollout_times(false));
  EXPECT_FALSE(window.end_step(step_metrics())) << "no report of simulation yet";
  window.add("env", simulator_times(2));
  Metrics last = step_metrics();
  last["time/actor_training"] = 0;
  const auto shares = window.end_step(last);
  ASSERT_TRUE(shares);
  expect_whole(*shares);
  EXPECT_DOUBLE_EQ(shares->learner.update, 0.2) << "of three steps, two with updates of 3 s in 10";
  EXPECT_FALSE(window.end_step(step_metrics())) << "nothing was reported since";
}

TEST(PhaseWindowTest, PartsThatAreMoreThanTheWholeAreSharesAllTheSame) {
  PhaseWindow window;
  ProducerTimes times = rollout_times(true);
  times.policy_seconds = 5;
  window.add("rollout", times);
  Metrics metrics = step_metrics();
  metrics["time/step"] = 1;
  const auto shares = window.end_step(metrics);
  ASSERT_TRUE(shares);
  expect_whole(*shares);
  EXPECT_EQ(shares->rollout.hand_over, 0);
  EXPECT_EQ(shares->learner.other, 0);
}

TEST(PhaseWindowTest, FineTuningHasNoPhases) {
  PhaseWindow window;
  window.add("decoder", {.actor = "decoder/0", .idle_seconds = 1, .busy_seconds = 1});
  EXPECT_FALSE(window.end_step({{"time/step", 1}, {"time/stall", 0.5}}));
}

}  // namespace
}  // namespace troupe::workers
