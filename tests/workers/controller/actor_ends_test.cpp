// What the job does when an actor's process ends, or does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/workers/controller/job_controller_fixture.h"

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(JobControllerTest, ALostDecoderIsReportedToFeedsAndStartedAgain) {
  begin();
  died("decoder/0", 0);
  const auto peers = effects.take<Peers>();
  ASSERT_EQ(peers.size(), 2u);
  EXPECT_THAT(peers[0].second.gone, ElementsAre("decoder/0#0"));
  pass(0ms);
  const auto spawns = effects.take<Spawn>();
  ASSERT_EQ(spawns.size(), 1u);
  EXPECT_EQ(spawns[0].second.incarnation, 1);
  EXPECT_EQ(job->state(), JobState::running);
}

TEST_F(JobControllerTest, AnEndThatIsToldTwiceCountsOnce) {
  begin();
  died("decoder/0", 0);
  died("decoder/0", 0);
  pass(0ms);
  EXPECT_EQ(effects.take<Spawn>().size(), 1u);
  died("decoder/0", 0);  // an older start's
  pass(1h);
  EXPECT_TRUE(effects.take<Spawn>().empty());
}

TEST_F(JobControllerTest, AnUnkillableDecoderIsLeftOutAndItsSlotsStayItsOwn) {
  begin();
  job->handle("node/0", ActorExited{.actor = "decoder/0", .killed_by_us = true, .unkillable = true}, now);
  const auto peers = effects.take<Peers>();
  ASSERT_EQ(peers.size(), 2u);
  EXPECT_THAT(peers[0].second.unkillable, ElementsAre("decoder/0#0"));
  EXPECT_THAT(peers[0].second.gone, ElementsAre());
  pass(20s);
  EXPECT_TRUE(effects.take<Spawn>().empty());
  EXPECT_EQ(job->state(), JobState::running);
  // the kernel lets go of it: now its slots are free
  died("decoder/0", 0);
  EXPECT_THAT(effects.take<Peers>().back().second.gone, ElementsAre("decoder/0#0"));
}

TEST_F(JobControllerTest, TheLastDecoderThatIsUnkillableEndsTheJob) {
  begin();
  for (const char* decoder : {"decoder/0", "decoder/1"})
    job->handle("node/0", ActorExited{.actor = decoder, .killed_by_us = true, .unkillable = true}, now);
  EXPECT_THAT(job->failure(), HasSubstr("decoder/1#0 survives SIGKILL"));
}

TEST_F(JobControllerTest, AnUnkillableRankEndsTheJobBecauseItsDeviceIsNotFree) {
  begin();
  job->handle("node/0", ActorExited{.actor = "learner/1", .killed_by_us = true, .unkillable = true}, now);
  EXPECT_THAT(job->failure(), HasSubstr("learner/1#0 survives SIGKILL"));
  EXPECT_TRUE(effects.take<Spawn>().empty());
}

TEST_F(JobControllerTest, GivesUpWhenALearnerDiesMoreOftenThanItsBudget) {
  begin();
  for (std::int64_t incarnation = 0; incarnation <= setup.config.cluster.restart.budget && job->failure().empty();
       ++incarnation) {
    died("learner/1", incarnation);
    for (int i = 0; i < 400 && effects.take<Spawn>().empty() && job->failure().empty(); ++i) pass(100ms);
    up("learner/1", incarnation + 1);
    // A step committed in between: it is this actor that fails, not the group.
    for (const auto& [to, plan] : effects.take<GroupPlan>()) {
      job->handle(to, GroupUp{.actor = to, .fence = plan.fence}, now);
      job->handle(to, StepReport{.actor = to, .fence = plan.fence, .step = 1}, now);
    }
  }
  EXPECT_THAT(job->failure(), HasSubstr("learner/1"));
}

TEST_F(JobControllerTest, AnActorThatOutlivesEverySigkillDoesNotHoldUpTheEnd) {
  begin();
  job->interrupt({.why = "SIGINT"}, now);
  job->interrupt({.why = "SIGINT"}, now);
  for (const char* actor : {"checkpointer/0", "decoder/0", "learner/0", "learner/1"}) died(actor, 0, 15);
  for (int i = 0; i < 10 && !job->exit_code(); ++i) pass(16s);
  EXPECT_EQ(job->exit_code(), 4);
  EXPECT_THAT(job->failure(), HasSubstr("decoder/1 (pid 1 of node/0) does not end"));
}

TEST_F(JobControllerTest, TheEndOfTheStderrIsShownForAnActorThatIsGivenUp) {
  begin();
  job->handle("node/0", ActorExited{.actor = "decoder/0", .exit_code = 78, .stderr_tail = "unsafe configuration"}, now);
  EXPECT_THAT(job->failure(), HasSubstr("decoder/0 exited with code 78 and is not started again: "));
  EXPECT_THAT(job->failure(), HasSubstr("; the end of its stderr:\nunsafe configuration"));
}

}  // namespace
}  // namespace troupe::workers
