#include "workers/controller/job_controller.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/bias_checkpoint.h"
#include "tests/workers/controller/job_controller_fixture.h"
#include "workers/checkpoint/commit.h"

namespace troupe::workers {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST_F(JobControllerTest, SpawnsThePlannedActorsThroughTheirNode) {
  job->start(now);
  const auto spawns = effects.take<Spawn>();
  ASSERT_EQ(spawns.size(), 5u);
  for (const auto& [to, spawn] : spawns) EXPECT_EQ(to, "node/0");
}

TEST_F(JobControllerTest, FormsTheGroupWhenTheLastLearnerIsUp) {
  job->start(now);
  up("learner/1");
  EXPECT_TRUE(effects.take<GroupPlan>().empty());
  up("decoder/0");
  up("learner/0");
  const auto plans = effects.take<GroupPlan>();
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans[1].second.rank, 1);
  EXPECT_EQ(plans[1].second.world, 2);
  EXPECT_EQ(plans[1].second.fence, setup.term << 32 | 1);
  const auto peers = effects.take<Peers>();
  ASSERT_EQ(peers.size(), 1u);
  EXPECT_THAT(peers[0].second.channels, ElementsAre("shm:learner/0", "shm:learner/1"));
  EXPECT_EQ(db->epochs().value().size(), 1u);
}

TEST_F(JobControllerTest, ADecoderThatComesUpLaterIsToldOfTheFeeds) {
  begin();
  died("decoder/1", 0);
  pass(0ms);
  up("decoder/1", 1);
  const auto peers = effects.take<Peers>();
  EXPECT_EQ(peers.back().first, "decoder/1");
  EXPECT_EQ(peers.back().second.channels.size(), 2u);
}

TEST_F(JobControllerTest, ALostLearnerSendsTheOthersBackToTheCommittedStep) {
  const std::uint64_t fence = begin();
  job->handle("learner/0",
              StepReport{.actor = "learner/0", .fence = fence, .step = 7, .metrics = {{"train/loss", 1.0}}}, now);
  died("learner/1", 0);
  const auto aborts = effects.take<GroupAbort>();
  ASSERT_EQ(aborts.size(), 1u);
  EXPECT_EQ(aborts[0].first, "learner/0");
  EXPECT_EQ(job->state(), JobState::recovering);
  pass(0ms);
  up("learner/1", 1);
  const auto plans = effects.take<GroupPlan>();
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans[0].second.fence, fence + 1);
  EXPECT_EQ(plans[0].second.resume_step, 0);
  EXPECT_NE(plans[0].second.store, "");
  group_up(fence + 1);
  EXPECT_EQ(job->state(), JobState::running);
  EXPECT_EQ(job->step(), 0);
}

TEST_F(JobControllerTest, AFailedCollectiveWithoutADeathFormsTheGroupAgain) {
  const std::uint64_t fence = begin();
  job->handle("learner/0", GroupAbort{.actor = "learner/0", .fence = fence, .reason = "connection reset"}, now);
  pass(100ms);
  EXPECT_TRUE(effects.take<GroupPlan>().empty()) << "waits for the exit of a peer to be reported";
  pass(2s);
  EXPECT_EQ(effects.take<GroupPlan>().size(), 2u);
}

TEST_F(JobControllerTest, TheRankThatSaysNothingIsKilledAndNotTheOneThatWaitedForIt) {
  const std::uint64_t fence = begin();
  const auto complain = [&](std::uint64_t of) {
    job->handle("learner/0", GroupAbort{.actor = "learner/0", .fence = of, .reason = "timed out"}, now);
    pass(2s);
  };
  complain(fence);
  EXPECT_EQ(effects.take<GroupPlan>().size(), 2u);
  pass(to_milliseconds(setup.config.training.step_timeout));
  complain(fence + 1);
  EXPECT_TRUE(effects.take<GroupPlan>().empty());
  const auto stops = effects.take<Stop>();
  ASSERT_EQ(stops.size(), 1u);
  EXPECT_EQ(stops[0].second.actor, "learner/1");
  died("learner/1", 0);
  pass(0ms);
  up("learner/1", 1);
  EXPECT_EQ(effects.take<GroupPlan>().size(), 2u);
}

TEST_F(JobControllerTest, TheRankThatACollectiveWaitedForInVainIsKilledAtOnce) {
  const std::uint64_t fence = begin();
  pass(to_milliseconds(setup.config.training.step_timeout));
  job->handle("learner/0", GroupAbort{.actor = "learner/0", .fence = fence, .reason = "timed out"}, now);
  pass(2s);
  EXPECT_TRUE(effects.take<GroupPlan>().empty());
  const auto stops = effects.take<Stop>();
  ASSERT_EQ(stops.size(), 1u);
  EXPECT_EQ(stops[0].second.actor, "learner/1");
}

TEST_F(JobControllerTest, ACollectiveInWhichAllTimedOutFormsTheGroupAgain) {
  const std::uint64_t fence = begin();
  pass(to_milliseconds(setup.config.training.step_timeout));
  for (const char* rank : {"learner/0", "learner/1"})
    job->handle(rank, GroupAbort{.actor = rank, .fence = fence, .reason = "timed out"}, now);
  pass(2s);
  EXPECT_TRUE(effects.take<Stop>().empty());
  EXPECT_EQ(effects.take<GroupPlan>().size(), 2u);
}

TEST_F(JobControllerTest, AGroupInWhichNobodyReportsFormsAgainAndThenDies) {
  begin();
  pass(to_milliseconds(5 * setup.config.training.step_timeout) - 1s);
  EXPECT_TRUE(effects.take<GroupPlan>().empty());
  pass(2s);
  EXPECT_EQ(effects.take<GroupPlan>().size(), 2u);
  pass(to_milliseconds(std::max(setup.config.cluster.start_timeout, setup.config.training.step_timeout)) + 3s);
  EXPECT_EQ(effects.take<Stop>().size(), 2u);
}

TEST_F(JobControllerTest, AGroupThatWaitsForTrajectoriesIsNotQuietWhileTheyAreMade) {
  begin();
  const std::chrono::milliseconds timeout = to_milliseconds(setup.config.training.step_timeout);
  for (int minute = 0; minute < 20; ++minute) {
    job->handle("rollout/0", ProducerTimes{.actor = "rollout/0", .idle_seconds = 0, .busy_seconds = 60}, now);
    pass(60s);
  }
  EXPECT_TRUE(effects.take<GroupPlan>().empty());
  // one that waits itself makes nothing
  for (int minute = 0; minute < 10; ++minute) {
    job->handle("rollout/0", ProducerTimes{.actor = "rollout/0", .idle_seconds = 60, .busy_seconds = 0}, now);
    pass(60s);
  }
  EXPECT_EQ(effects.take<GroupPlan>().size(), 2u) << "after five times " << timeout.count() << " ms";
}

TEST_F(JobControllerTest, MessagesOfAnOlderFenceAreIgnored) {
  const std::uint64_t fence = begin();
  job->handle("learner/0", StepReport{.actor = "learner/0", .fence = fence - 1, .step = 9}, now);
  EXPECT_EQ(job->step(), 0);
  job->handle(
      "learner/0",
      SnapshotReady{.actor = "learner/0", .rank = 0, .step = 9, .fence = fence - 1, .handle = "h", .updates = 9}, now);
  EXPECT_TRUE(effects.take<CheckpointBegin>().empty());
}

TEST_F(JobControllerTest, CollectsSnapshotsOfAllRanksBeforeTheCheckpointerWrites) {
  const std::uint64_t fence = begin();
  snapshot(fence, 1, "b");
  EXPECT_TRUE(effects.take<CheckpointBegin>().empty());
  snapshot(fence, 0, "a");
  const auto begun = effects.take<CheckpointBegin>();
  ASSERT_EQ(begun.size(), 1u);
  EXPECT_THAT(begun[0].second.snapshots, ElementsAre("a", "b"));
  died("checkpointer/0", 0);
  pass(0ms);
  up("checkpointer/0", 1);
  EXPECT_EQ(effects.take<CheckpointBegin>().size(), 1u) << "asked again after its death";
}

TEST_F(JobControllerTest, AFailedWriteIsTriedAgainAndThenGivenUp) {
  const std::uint64_t fence = begin();
  for (const std::int64_t rank : {0, 1}) snapshot(fence, rank, "h");
  for (int attempt = 0; attempt < 3; ++attempt) {
    ASSERT_EQ(effects.take<CheckpointBegin>().size(), 1u) << attempt;
    job->handle("checkpointer/0",
                CheckpointDone{.step = 10, .fence = fence, .error = "rank-0: No space left on device"}, now);
    pass(5s);
  }
  const auto settled = effects.take<CheckpointCommitted>();
  ASSERT_EQ(settled.size(), 2u);
  EXPECT_FALSE(settled[0].second.committed);
  EXPECT_EQ(job->state(), JobState::running) << "training goes on";
}

TEST_F(JobControllerTest, TheFolderOfAStaleCheckpointIsRemoved) {
  const std::uint64_t fence = begin();
  const std::string stale = setup.run.checkpoints() + "/" + checkpoint_tmp_name(10, fence - 1);
  ASSERT_TRUE(std::filesystem::create_directory(stale));
  job->handle("checkpointer/0", CheckpointDone{.step = 10, .fence = fence - 1}, now);
  EXPECT_FALSE(std::filesystem::exists(stale));
}

TEST_F(JobControllerTest, AGroupThatFormsWaitsForTheCommitUnderWay) {
  const std::uint64_t fence = begin();
  for (const std::int64_t rank : {0, 1}) snapshot(fence, rank, "h");
  const auto written = write_bias_checkpoint(effects.take<CheckpointBegin>().at(0).second.directory, 10, fence, 2);
  effects.is_disk_slow = true;
  job->handle("checkpointer/0", CheckpointDone{.step = 10, .fence = fence, .manifest_hash = written.manifest_hash},
              now);
  died("learner/1", 0);
  pass(0ms);
  up("learner/1", 1);
  EXPECT_TRUE(effects.take<GroupPlan>().empty()) << "from which step is open";
  effects.is_disk_slow = false;
  effects.catch_up();
  pass(50ms);
  const auto plans = effects.take<GroupPlan>();
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans[0].second.resume_step, 10);
}

TEST_F(JobControllerTest, RanksAreAskedToFormOnceTheGroupIsOnDiskAndNotBlamedForTheDisk) {
  begin();
  effects.is_disk_slow = true;
  died("learner/1", 0);
  pass(0ms);
  up("learner/1", 1);
  EXPECT_TRUE(effects.take<GroupPlan>().empty());
  pass(to_milliseconds(setup.config.cluster.start_timeout) + 1h);
  EXPECT_TRUE(effects.take<Stop>().empty());
  effects.is_disk_slow = false;
  effects.catch_up();
  EXPECT_EQ(effects.take<GroupPlan>().size(), 2u);
}

TEST_F(JobControllerTest, NobodyIsAskedIntoAGroupThatLostARankBeforeItWasOnDisk) {
  begin();
  effects.is_disk_slow = true;
  died("learner/1", 0);
  pass(0ms);
  up("learner/1", 1);
  died("learner/0", 0);
  effects.is_disk_slow = false;
  effects.catch_up();
  EXPECT_TRUE(effects.take<GroupPlan>().empty());
  pass(0ms);
  up("learner/0", 1);
  EXPECT_EQ(effects.take<GroupPlan>().size(), 2u);
}

TEST_F(JobControllerTest, AGroupThatHasLostARankIsNotUpWhenTheOthersSaySo) {
  begin();
  died("learner/1", 0);
  pass(0ms);
  up("learner/1", 1);
  const std::uint64_t fence = effects.take<GroupPlan>().at(0).second.fence;
  job->handle("learner/1", GroupUp{.actor = "learner/1", .fence = fence}, now);
  died("learner/1", 1);
  job->handle("learner/0", GroupUp{.actor = "learner/0", .fence = fence}, now);
  EXPECT_EQ(job->state(), JobState::recovering);
}

TEST_F(JobControllerTest, ACheckpointThatHangsIsGivenUpAfterThreeAttempts) {
  const std::uint64_t fence = begin();
  const auto timeout = to_milliseconds(setup.config.checkpoint.timeout) + 1s;
  for (const std::int64_t rank : {0, 1}) snapshot(fence, rank, "h");
  for (std::int64_t attempt = 0; attempt < 3; ++attempt) {
    EXPECT_EQ(effects.take<CheckpointBegin>().size(), 1u) << attempt;
    EXPECT_TRUE(effects.take<CheckpointCommitted>().empty());
    pass(timeout);
    const auto stops = effects.take<Stop>();
    ASSERT_EQ(stops.size(), 1u) << stops.back().second.actor << " " << stops.back().second.reason;
    EXPECT_EQ(stops[0].second.actor, "checkpointer/0") << "the one that hangs is killed";
    died("checkpointer/0", attempt);
    for (int i = 0; i < 100 && effects.take<Spawn>().empty(); ++i) pass(100ms);
    up("checkpointer/0", attempt + 1);
  }
  EXPECT_TRUE(effects.take<CheckpointBegin>().empty());
  const auto settled = effects.take<CheckpointCommitted>();
  ASSERT_EQ(settled.size(), 2u);
  EXPECT_FALSE(settled[0].second.committed);
  EXPECT_EQ(job->state(), JobState::running) << "training goes on";
}

TEST_F(JobControllerTest, AttemptsCountAlsoWhenTheRanksComeToTheStepAgain) {
  std::uint64_t fence = begin();
  const auto timeout = to_milliseconds(setup.config.checkpoint.timeout) + 1s;
  std::size_t begun = 0, given_up = 0;
  for (std::int64_t round = 0; round < 4 && given_up == 0; ++round) {
    for (const std::int64_t rank : {0, 1}) snapshot(fence, rank, "h");
    begun += effects.take<CheckpointBegin>().size();
    pass(timeout);
    given_up += effects.take<CheckpointCommitted>().size();
    died("checkpointer/0", round);
    died("learner/1", round);
    for (int i = 0; i < 100 && effects.take<Spawn>().size() < 1; ++i) pass(100ms);
    pass(5s);
    up("checkpointer/0", round + 1);
    up("learner/1", round + 1);
    for (const auto& [to, plan] : effects.take<GroupPlan>()) fence = plan.fence;
    group_up(fence);
  }
  EXPECT_EQ(begun, 3u);
  EXPECT_EQ(given_up, 2u) << "both ranks are told";
}

TEST_F(JobControllerTest, TooManyBadSamplesFailTheJob) {
  const std::uint64_t fence = begin();
  StepReport report{.actor = "learner/0", .fence = fence, .step = 1};
  for (std::int64_t p = 0; p < 9; ++p) report.void_positions.push_back(p);  // 1% of 800 positions is 8
  report.bad_positions = report.void_positions;
  job->handle("learner/0", report, now);
  EXPECT_THAT(job->failure(), HasSubstr("data.max_bad_fraction"));
}

TEST_F(JobControllerTest, StepsThatAreNotFiniteAreNoBadSamples) {
  const std::uint64_t fence = begin();
  StepReport report{.actor = "learner/0", .fence = fence, .step = 1};
  for (std::int64_t p = 0; p < 400; ++p) report.void_positions.push_back(p);
  job->handle("learner/0", report, now);
  EXPECT_EQ(job->failure(), "");
  EXPECT_EQ(job->void_samples(), 400);
}

TEST_F(JobControllerTest, TimesOfProducersAreCollectedAndNotShown) {
  const std::size_t shown = effects.events.size();
  job->handle("decoder/1", ProducerTimes{.actor = "decoder/1", .idle_seconds = 0.5, .busy_seconds = 1.5}, now);
  job->handle("decoder/1", ProducerTimes{.actor = "decoder/1", .idle_seconds = -1, .busy_seconds = 1}, now);
  job->handle("decoder/1", ProducerTimes{.actor = "decoder/1", .busy_seconds = 1, .await_seconds = -1}, now);
  job->handle("decoder/1", ProducerTimes{.actor = "decoder/1", .env_steps = -1}, now);
  job->handle("decoder/1", ProducerTimes{.actor = "decoder/1", .env_step_seconds = -1}, now);
  EXPECT_EQ(effects.times, (std::vector<std::pair<double, double>>{{0.5, 1.5}}));
  EXPECT_EQ(effects.events.size(), shown);
}

TEST_F(JobControllerTest, AStuckProducerIsKilledAndReplaced) {
  begin();
  job->handle("learner/0", StuckProducer{.actor = "learner/0", .producer = "decoder/1#0", .text = "held too long"},
              now);
  EXPECT_EQ(effects.events.back(), "stuck: held too long; decoder/1 is killed");
  const auto stops = effects.take<Stop>();
  ASSERT_EQ(stops.size(), 1u);
  EXPECT_EQ(stops[0].second.grace_ms, 0);
  died("decoder/1", 0);
  pass(0ms);
  EXPECT_EQ(effects.take<Spawn>().size(), 1u);
}

TEST_F(JobControllerTest, FeedsAreToldOfDeathsThatSpeakAgainstTheSample) {
  begin();
  struct Case {
    ActorExited exit;
    bool died;
  };
  std::int64_t incarnation = 0;
  const auto ended = [](std::int64_t signal, bool by_us, bool out_of_memory) {
    return ActorExited{.actor = "decoder/0", .signal = signal, .killed_by_us = by_us, .out_of_memory = out_of_memory};
  };
  for (const Case& c :
       {Case{ended(11, false, false), true}, Case{ended(9, false, false), false}, Case{ended(15, false, false), false},
        Case{ended(9, true, false), true}, Case{ended(0, false, false), false}, Case{ended(9, false, true), true}}) {
    ActorExited exit = c.exit;
    exit.incarnation = incarnation;
    job->handle("node/0", exit, now);
    const auto told = effects.take<Peers>();
    ASSERT_EQ(told.size(), 2u) << "both feeds";
    EXPECT_EQ(told[0].second.gone, std::vector<std::string>{fmt::format("decoder/0#{}", incarnation)});
    EXPECT_EQ(!told[0].second.died.empty(), c.died) << incarnation;
    pass(70s);  // so that the budget of five in 300 s holds
    up("decoder/0", ++incarnation);
    effects.sent.clear();
  }
}

TEST_F(JobControllerTest, ASampleInQuarantineIsListedAndItsDeathsDoNotCount) {
  begin();
  std::int64_t incarnation = 0;
  for (int sample = 0; sample < 5; ++sample) {
    std::vector<std::string> dead;
    for (int death = 0; death < 2; ++death) {
      dead.push_back(fmt::format("decoder/0#{}", incarnation));
      died("decoder/0", incarnation, 11);
      ASSERT_EQ(job->failure(), "") << "death " << incarnation;
      pass(10s);
      up("decoder/0", ++incarnation);
    }
    job->handle("learner/0",
                Quarantined{.actor = "learner/0", .position = 40 + sample, .producers = dead, .text = "two died of it"},
                now);
  }
  EXPECT_THAT(effects.samples, ElementsAre(40, 41, 42, 43, 44));
  EXPECT_EQ(effects.events.back(), "quarantined: learner/0: position 44 is left out: two died of it");
  EXPECT_EQ(job->failure(), "");
}

TEST_F(JobControllerTest, WhatDidNotCountBeforeAResumeIsCarriedOn) {
  setup.resume_step = 10;
  setup.resume_voids = {3, 4, 5};
  setup.resume_bad = {4};
  job = std::make_unique<JobController>(setup, *db, effects);
  const std::uint64_t fence = begin();
  EXPECT_EQ(job->void_samples(), 3);
  StepReport report{.actor = "learner/0", .fence = fence, .step = 11, .void_positions = {81}, .bad_positions = {81}};
  job->handle("learner/0", report, now);
  for (const std::int64_t rank : {0, 1}) snapshot(fence, rank, "h");
  const auto begun = effects.take<CheckpointBegin>().at(0).second;
  EXPECT_THAT(begun.void_positions, ElementsAre(3, 4, 5, 81));
  EXPECT_THAT(begun.bad_positions, ElementsAre(4, 81));
}

TEST_F(JobControllerTest, ABadClipIsListedWithItsReporterAndIsNoEvent) {
  const std::size_t shown = effects.events.size();
  job->handle("learner/0", BadClip{.actor = "learner/0", .file = "a.mp4", .group = 25, .text = "position 3: broken"},
              now);
  EXPECT_THAT(effects.clips, ElementsAre("a.mp4: learner/0: position 3: broken"));
  EXPECT_EQ(effects.events.size(), shown);
}

TEST_F(JobControllerTest, AFatalErrorOfARankFailsTheJob) {
  begin();
  job->handle("learner/1", Fatal{.actor = "learner/1", .text = "10 steps in a row were non-finite"}, now);
  EXPECT_EQ(job->failure(), "learner/1: 10 steps in a row were non-finite");
  EXPECT_EQ(effects.events.back(), "failed: learner/1: 10 steps in a row were non-finite");
  EXPECT_EQ(job->state(), JobState::stopping);
}

TEST_F(JobControllerTest, RanksThatCannotReadACheckpointGoBackToTheOneBefore) {
  const std::string checkpoints = setup.run.checkpoints();
  const auto plan = begin_at_checkpoints({10, 20});
  ASSERT_EQ(plan.resume_step, 20);
  for (const char* rank : {"learner/0", "learner/1"})
    job->handle(rank, GroupAbort{.actor = rank, .fence = plan.fence, .reason = "a byte changed", .damaged_step = 20},
                now);
  pass(100ms);
  const auto plans = effects.take<GroupPlan>();
  ASSERT_THAT(plans, ::testing::SizeIs(2)) << "one group, however many ranks say so";
  EXPECT_GT(plans[0].second.fence, plan.fence);
  EXPECT_EQ(plans[0].second.resume_step, 10);
  EXPECT_EQ(plans[0].second.checkpoint, checkpoints + "/step_000010");
  pass(5s);
  EXPECT_THAT(effects.take<GroupPlan>(), ::testing::IsEmpty());
  // That one cannot be read either, and there is none before it.
  job->handle("learner/0",
              GroupAbort{.actor = "learner/0", .fence = plans[0].second.fence, .reason = "gone", .damaged_step = 10},
              now);
  pass(100ms);
  EXPECT_THAT(job->failure(), ::testing::HasSubstr("step 10 cannot be read: gone; there is none before it"));
}

TEST_F(JobControllerTest, BehindADamagedCheckpointTheGroupWaitsForARankThatIsGone) {
  const auto plan = begin_at_checkpoints({10, 20});
  died("learner/1", 0);
  job->handle("learner/0",
              GroupAbort{.actor = "learner/0", .fence = plan.fence, .reason = "a byte changed", .damaged_step = 20},
              now);
  pass(100ms);
  EXPECT_THAT(effects.take<GroupPlan>(), ::testing::IsEmpty());
  up("learner/1", 1);
  const auto plans = effects.take<GroupPlan>();
  ASSERT_THAT(plans, ::testing::SizeIs(2));
  EXPECT_EQ(plans[1].second.resume_step, 10);
}

TEST_F(JobControllerTest, WhatRankZeroSaysOfItsSnapshotGoesToTheCheckpointer) {
  const std::uint64_t fence = begin();
  for (const std::int64_t rank : {0, 1}) {
    SnapshotReady ready{.actor = "", .rank = rank, .step = 10, .fence = fence, .handle = "h", .updates = 10};
    if (rank == 0) ready.group_updates = {{"actor", 5}};
    if (rank == 0) ready.trainer_state = "{}";
    job->handle("learner", ready, now);
  }
  const auto begun = effects.take<CheckpointBegin>().at(0).second;
  EXPECT_THAT(begun.group_updates, ElementsAre(Pair("actor", 5)));
  EXPECT_EQ(begun.trainer_state, "{}");
}

}  // namespace
}  // namespace troupe::workers
