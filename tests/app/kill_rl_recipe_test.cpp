// A whole recipe of reinforcement learning under kills and changes of its pool.
#include <random>

#include "tests/app/kill_rl_fixture.h"

namespace troupe::app {
namespace {

/// The whole recipe: it must still learn what it learns undisturbed (475, in each of the seeds 0 to 9).
class KillRlRecipeTest : public KillRlTest {
 protected:
  Words recipe(const Words& overrides = {}) const {
    return Words{"run", "rl_cartpole_ppo", "job.run_root=" + (dir_ / "runs"), "metrics.every=1",
                 "cluster.restart={budget: 20, component_budget: 40, backoff_initial_s: 0.1, backoff_max_s: 0.2}"} +
           overrides;
  }
  void expect_learnt(JobProcess& job) {
    ASSERT_NO_FATAL_FAILURE(expect_complete(job, "runs", 2 * kRunDeadline));
    EXPECT_GE(curve("runs", "eval/return").rbegin()->second, 475);
  }
};

TEST_F(KillRlRecipeTest, TwentyKillsAndThreePoolSizesTakeNothingFromWhatIsLearnt) {
  JobProcess job(recipe(), dir_ / "runs.log");
  const auto scale = [&](const std::string& pools, const std::string& newest) {
    ASSERT_TRUE(succeeded(troupe({"scale", pools, "--run-root", dir_ / "runs"})));
    ASSERT_TRUE(job.wait_until([&] { return job.host(newest).has_value(); }, 30s)) << job.output();
  };
  std::mt19937 random(7);
  for (int kill = 0; kill < 20; ++kill) {
    ASSERT_TRUE(job.wait_output(iteration(2 + 3 * kill))) << job.output();
    if (kill == 2) scale("env=8", "env/7");
    if (kill == 14) scale("env=2", "env/1");
    if (HasFatalFailure()) return;
    const int envs = kill < 2    ? 1
                     : kill < 14 ? 8
                                 : 2,
              actor = static_cast<int>(random() % static_cast<unsigned>(envs + 1));
    job.strike(actor == envs ? std::string("rollout/0") : "env/" + std::to_string(actor), SIGKILL);
  }
  expect_learnt(job);
}

TEST_F(KillRlRecipeTest, KillsOfWorkersThatStepTheirEnvironmentsTakeNothingFromWhatIsLearnt) {
  JobProcess job(recipe({"cluster.isolation.env=inline", "cluster.component_placement.rollout=0:0-1"}),
                 dir_ / "runs.log");
  // both each time: one alone would finish the job before the other is back
  for (int kill = 0; kill < 8; ++kill) {
    ASSERT_TRUE(job.wait_output(iteration(2 + 9 * kill))) << job.output();
    for (const char* worker : {"rollout/0", "rollout/1"}) job.strike(worker, SIGKILL);
  }
  expect_learnt(job);
}

}  // namespace
}  // namespace troupe::app
