// Deaths at scripted places (docs/fault-points.md), where a kill by hand would hardly ever land.
#include "tests/app/kill_fixture.h"

namespace troupe::app {
namespace {

struct Scripted {
  std::string name;
  std::string spec;   ///< of TROUPE_FAULT
  std::string actor;  ///< who dies
};

class KillScriptedTest : public KillTest, public ::testing::WithParamInterface<Scripted> {};

TEST_P(KillScriptedTest, TheRunCompletesWithTheSameWeights) {
  auto job = run("struck", {}, {}, {{"TROUPE_FAULT", GetParam().spec}});
  expect_complete(*job, "struck");
  EXPECT_THAT(job->output(), ::testing::HasSubstr(GetParam().actor + " killed by signal 9; restart 1"));
  EXPECT_EQ(weights("struck"), undisturbed_weights());
}

INSTANTIATE_TEST_SUITE_P(
    Points, KillScriptedTest,
    ::testing::Values(
        // While the peer waits in the step's first collective, and twice in a row at different steps.
        Scripted{"InAStep", "learner.step@learner/1#0 step 7:kill,learner.step@learner/1#1 step 9:kill", "learner/1"},
        // Its snapshot of step 10 is with the checkpointer, which may still read it.
        Scripted{"WithACheckpointUnderWay", "learner.committed@learner/0#0 step 10:kill", "learner/0"},
        Scripted{"AfterTheLastStep", "learner.committed@learner/0#0 step 40:kill", "learner/0"},
        Scripted{"BetweenSamples", "decoder.item@decoder/0#0:kill:1:20", "decoder/0"},
        Scripted{"BeforeACheckpoint", "checkpointer.begin@checkpointer/0#0 step 10:kill", "checkpointer/0"},
        Scripted{"InARankFile", "checkpoint.write@checkpointer/0#0:kill:1:3", "checkpointer/0"},
        Scripted{"BeforeTheManifest", "checkpoint.manifest@checkpointer/0#0:kill:1:1", "checkpointer/0"}),
    [](const auto& scripted) { return scripted.param.name; });

using KillScriptedErrorTest = KillTest;

TEST_F(KillScriptedErrorTest, AFullDiskCostsACheckpointAndNotTheRun) {
  // Three attempts of the checkpoint of step 10; the next one finds room again.
  auto job = run("full", {}, {}, {{"TROUPE_FAULT", "checkpointer.begin@step 10:enospc:3"}});
  expect_complete(*job, "full");
  EXPECT_THAT(job->output(), ::testing::HasSubstr("checkpoint of step 10 given up"));
  EXPECT_THAT(job->output(), ::testing::HasSubstr("No space left on device"));
}

TEST_F(KillScriptedErrorTest, ALearnerThatDiesAtTheSameStepEachTimeEndsTheRun) {
  auto job =
      run("again", {"cluster.restart.backoff_initial_s=0.1"}, {}, {{"TROUPE_FAULT", "learner.step@step 7:kill"}});
  EXPECT_EQ(job->wait(kRunDeadline), 4) << job->output();
  EXPECT_THAT(job->output(), ::testing::HasSubstr("error: "));
  expect_sound("again");
}

}  // namespace
}  // namespace troupe::app
