// What rollout workers and simulators say of their time: phases are parts of it.
#include <gtest/gtest.h>

#include "tests/workers/rollout/rollout_fixture.h"

namespace troupe::workers {
namespace {

using namespace testing;

/// Sums of doubles.
constexpr double kRounding = 1e-9;

/// Plays with a report at every turn, and adds up what `actor` has said.
ProducerTimes sum_of(const RolloutJob& job, const std::string& actor) {
  ProducerTimes sum;
  for (const ProducerTimes& times : job.times(actor)) {
    for (const double part :
         {times.idle_seconds, times.simulate_seconds, times.policy_seconds, times.record_seconds, times.await_seconds})
      EXPECT_GE(part, 0);
    EXPECT_LE(times.simulate_seconds + times.policy_seconds + times.record_seconds + times.await_seconds,
              times.busy_seconds + kRounding);
    sum += times;
  }
  return sum;
}

TEST(PhaseTimesTest, ARolloutWorkerThatStepsItsBlocksHasAllPhases) {
  RolloutJob job(cart_pole_job());
  job.inline_threads = 1;
  job.report_seconds = 0;
  job.start(0, 1);
  play(job, 3);
  const ProducerTimes sum = sum_of(job, "rollout/0");
  EXPECT_GT(sum.simulate_seconds, 0);
  EXPECT_GT(sum.policy_seconds, 0);
  EXPECT_GT(sum.record_seconds, 0);
}

TEST(PhaseTimesTest, SimulatorsSimulateWhileTheRolloutWorkerWaits) {
  RolloutJob job(cart_pole_job());
  job.report_seconds = 0;
  job.start(1, 1);
  play(job, 3);
  const ProducerTimes rollout = sum_of(job, "rollout/0"), simulator = sum_of(job, "env/0");
  EXPECT_EQ(rollout.simulate_seconds, 0);
  EXPECT_GT(rollout.policy_seconds, 0);
  EXPECT_GT(rollout.record_seconds, 0);
  EXPECT_GT(simulator.simulate_seconds, 0);
  EXPECT_EQ(simulator.policy_seconds + simulator.record_seconds + simulator.await_seconds, 0);
}

TEST(PhaseTimesTest, AWorkerThatFindsNothingToDoIsNotBusy) {
  JobConfig config = cart_pole_job();
  config.env.step_timeout = Seconds(0.004);  // it looks for stuck simulators four times as often
  RolloutJob job(config);
  job.inline_threads = 1;
  job.report_seconds = 0;
  job.start(0, 1);
  ASSERT_TRUE(job.wait_for_times("rollout/0", 5));
  const ProducerTimes sum = sum_of(job, "rollout/0");
  EXPECT_EQ(sum.busy_seconds, 0);
  EXPECT_GT(sum.idle_seconds, 0);
}

}  // namespace
}  // namespace troupe::workers
