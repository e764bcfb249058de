// Commits of checkpoints: two places on disk that a crash may find apart.
#include "workers/controller/checkpoint_coordinator.h"

#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "tests/support/bias_checkpoint.h"
#include "tests/support/folder_files.h"
#include "tests/workers/controller/job_controller_fixture.h"
#include "workers/checkpoint/commit.h"

namespace troupe::workers {
namespace {

using namespace troupe::testing;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct CheckpointCoordinatorTest : ::testing::Test {
  std::string folder_of(std::int64_t step) const { return run.checkpoints() + "/" + checkpoint_tmp_name(step, kFence); }
  /// The checkpointer has written `step`: its temporary folder lies there.
  CheckpointDone written(std::int64_t step) const {
    const auto made = write_bias_checkpoint(folder_of(step), step, kFence, 1);
    return {.step = step, .fence = kFence, .manifest_hash = made.manifest_hash};
  }
  CheckpointRecord record(const CheckpointDone& done) const {
    return {.step = done.step,
            .fence = kFence,
            .directory = "checkpoints/" + checkpoint_name(done.step),
            .manifest_hash = done.manifest_hash};
  }
  /// All there is to do for a checkpoint of `step`.
  bool commit(std::int64_t step) {
    coordinator.on_snapshot({.actor = "", .rank = 0, .step = step, .fence = kFence, .handle = "h", .updates = step},
                            kFence, true, {}, {}, now);
    coordinator.on_done(written(step), kFence, now);
    return coordinator.committed_step() == step;
  }
  /// A byte of its rank file changes.
  void damage(std::int64_t step) const {
    flip_byte(run.checkpoints() + "/" + checkpoint_name(step) + "/" + Manifest::rank_file(0, 1), -1);
  }
  /// What a new controller finds and settles.
  void settle(std::int64_t resume_step) {
    coordinator.resume_from(resume_step, "");
    coordinator.settle().value();
  }
  std::vector<std::int64_t> catalogue() const {
    std::vector<std::int64_t> steps;
    const auto rows = db->checkpoints().value();
    for (const CheckpointRecord& c : rows) steps.push_back(c.step);
    return steps;
  }

  static constexpr std::uint64_t kFence = (1ull << 32) + 1;
  const ScratchFolder scratch;
  const RunDirectory run = RunDirectory::create(scratch.path(), "test", "run").value();
  std::unique_ptr<StateDb> db = StateDb::open(run.state_db()).value();
  RecordingEffects effects;
  CheckpointCoordinator::TimePoint now{1h};
  CheckpointCoordinator coordinator{{.world = 1, .keep = 3}, run, *db, effects};
};

TEST_F(CheckpointCoordinatorTest, ACommitLeavesNoIntentBehind) {
  EXPECT_TRUE(commit(10));
  EXPECT_THAT(catalogue(), ElementsAre(10));
  EXPECT_EQ(db->committed_step().value(), 10);
  EXPECT_FALSE(db->unfinished_commit().value());
}

TEST_F(CheckpointCoordinatorTest, ACommitThatEndedBehindTheRenameIsFinished) {
  const CheckpointDone done = written(10);
  db->begin_commit(record(done)).value();
  std::filesystem::rename(folder_of(10), run.checkpoints() + "/step_000010");
  settle(10);
  EXPECT_THAT(catalogue(), ElementsAre(10));
  EXPECT_EQ(db->checkpoints().value()[0].manifest_hash, done.manifest_hash);
  EXPECT_EQ(db->committed_step().value(), 10);
  EXPECT_FALSE(db->unfinished_commit().value());
  EXPECT_EQ(std::filesystem::read_symlink(run.checkpoints() + "/latest"), "step_000010");
  EXPECT_THAT(effects.events, ElementsAre("checkpoint_settled: the commit of step 10 was interrupted: finished now"));
}

TEST_F(CheckpointCoordinatorTest, ACommitThatEndedBeforeTheRenameIsForgotten) {
  ASSERT_TRUE(commit(10));
  db->begin_commit(record(written(20))).value();
  settle(10);
  EXPECT_THAT(catalogue(), ElementsAre(10));
  EXPECT_EQ(db->committed_step().value(), 10);
  EXPECT_FALSE(db->unfinished_commit().value());
}

TEST_F(CheckpointCoordinatorTest, WhatACommitReplacedDoesNotComeBack) {
  ASSERT_TRUE(commit(10));
  const CheckpointDone done = written(10);
  db->begin_commit(record(done)).value();
  // The exchange is done, the old one not removed yet.
  const std::string committed = run.checkpoints() + "/step_000010";
  std::filesystem::rename(committed, scratch.path() + "/old");
  std::filesystem::rename(folder_of(10), committed);
  std::filesystem::rename(scratch.path() + "/old", folder_of(10));
  std::ofstream(committed + "/new") << "this one";
  settle(10);
  EXPECT_TRUE(std::filesystem::exists(committed + "/new"));
  EXPECT_FALSE(std::filesystem::exists(folder_of(10)));
  EXPECT_FALSE(db->unfinished_commit().value());
}

TEST_F(CheckpointCoordinatorTest, AnotherAttemptAtTheSameStepIsNotTakenForTheOneThatWasBegun) {
  ASSERT_TRUE(commit(10));
  CheckpointRecord other = record(written(10));
  other.manifest_hash = "0123";
  db->begin_commit(other).value();
  settle(10);
  EXPECT_NE(db->checkpoints().value()[0].manifest_hash, "0123");
  EXPECT_FALSE(db->unfinished_commit().value());
}

TEST_F(CheckpointCoordinatorTest, TheCatalogueIsThatOfTheDisk) {
  ASSERT_TRUE(commit(10));
  ASSERT_TRUE(commit(20));
  std::filesystem::remove_all(run.checkpoints() + "/step_000010");  // pruned, and the row stayed
  db->remove_checkpoint(20).value();
  settle(20);
  EXPECT_THAT(catalogue(), ElementsAre(20));
}

TEST_F(CheckpointCoordinatorTest, AGroupThatFormsAgainTakesBackACommitThatFailedHalfWay) {
  ASSERT_TRUE(commit(10));
  // The rename succeeds; `latest` cannot be moved, so the commit fails.
  std::filesystem::create_directories(run.checkpoints() + "/latest.tmp/in_the_way");
  EXPECT_FALSE(commit(20));
  EXPECT_TRUE(std::filesystem::exists(run.checkpoints() + "/step_000020"));
  // It was moved after all, as far as anybody can know.
  std::filesystem::remove_all(run.checkpoints() + "/latest.tmp");
  move_link(run.checkpoints(), kLatestLink, "step_000020").value();
  coordinator.abandon();
  EXPECT_FALSE(std::filesystem::exists(run.checkpoints() + "/step_000020"))
      << "a later start would go on from a step that the new group trains otherwise";
  EXPECT_FALSE(db->unfinished_commit().value());
  EXPECT_EQ(coordinator.committed_step(), 10);
  EXPECT_EQ(std::filesystem::read_symlink(run.checkpoints() + "/latest"), "step_000010");
}

TEST_F(CheckpointCoordinatorTest, AStepOfWhichARankHasNoSnapshotIsGivenUp) {
  coordinator.on_snapshot({.actor = "", .rank = 0, .step = 10, .fence = kFence, .handle = "", .error = "disk is full"},
                          kFence, true, {}, {}, now);
  EXPECT_THAT(effects.take<CheckpointBegin>(), IsEmpty());
  const auto told = effects.take<CheckpointCommitted>();
  ASSERT_THAT(told, ::testing::SizeIs(1));
  EXPECT_FALSE(told[0].second.committed);
  EXPECT_THAT(effects.events, ElementsAre("checkpoint_given_up: checkpoint of step 10 given up: disk is full"));
  EXPECT_TRUE(commit(20));
}

TEST_F(CheckpointCoordinatorTest, BehindADamagedCheckpointTheOneBeforeItIsTheNewest) {
  ASSERT_TRUE(commit(10));
  const std::string before = coordinator.committed_directory();
  ASSERT_TRUE(commit(20));
  effects.events.clear();
  effects.is_disk_slow = true;
  coordinator.go_back(kFence + 1, "a byte changed", now);
  EXPECT_TRUE(coordinator.newest_is_open()) << "no group forms before the disk has it";
  EXPECT_FALSE(coordinator.failure(now + 600s));
  EXPECT_TRUE(coordinator.failure(now + 601s));
  effects.catch_up();
  EXPECT_FALSE(coordinator.newest_is_open());
  EXPECT_FALSE(coordinator.failure(now));
  EXPECT_EQ(coordinator.committed_step(), 10);
  EXPECT_EQ(coordinator.committed_directory(), before);
  EXPECT_EQ(db->committed_step().value(), 10);
  EXPECT_THAT(catalogue(), ElementsAre(10));
  EXPECT_THAT(effects.events, ElementsAre("checkpoint_damaged: the checkpoint of step 20 cannot be read: a byte "
                                          "changed; it is kept under another name, and all ranks go back to step 10"));
}

TEST_F(CheckpointCoordinatorTest, ARunThatGoesOnBehindADamagedCheckpointSetsItAside) {
  for (const std::int64_t step : {10, 20, 30}) ASSERT_TRUE(commit(step));
  settle(10);
  EXPECT_THAT(catalogue(), ElementsAre(10));
  EXPECT_EQ(std::filesystem::read_symlink(run.checkpoints() + "/latest"), "step_000010");
}

TEST_F(CheckpointCoordinatorTest, BehindTheOnlyCheckpointThereIsNoWayBack) {
  ASSERT_TRUE(commit(10));
  coordinator.go_back(kFence + 1, "a byte changed", now);
  EXPECT_THAT(
      coordinator.failure(now).value_or(""),
      ::testing::StartsWith("the checkpoint of step 10 cannot be read: a byte changed; there is none before it"));
  EXPECT_EQ(coordinator.committed_step(), 10);
}

TEST_F(CheckpointCoordinatorTest, ARunThatGoesOnFromDamagedCheckpointsAloneBeginsAnew) {
  for (const std::int64_t step : {10, 20}) {
    ASSERT_TRUE(commit(step));
    damage(step);
  }
  effects.events.clear();
  coordinator.resume_from(20, run.checkpoints() + "/step_000020");
  coordinator.go_back(kFence + 1, "a byte changed", now);
  EXPECT_EQ(coordinator.committed_step(), 10);
  coordinator.go_back(kFence + 2, "a byte changed", now);
  EXPECT_FALSE(coordinator.failure(now));
  EXPECT_EQ(coordinator.committed_step(), 0);
  EXPECT_EQ(coordinator.committed_directory(), "");
  EXPECT_EQ(db->committed_step().value(), 0);
  EXPECT_THAT(catalogue(), IsEmpty());
  EXPECT_THAT(effects.events.back(), ::testing::HasSubstr("all ranks go back to step 0"));
}

TEST_F(CheckpointCoordinatorTest, ASoundCheckpointThatARankDoesNotSeeIsNoReasonToBeginAnew) {
  ASSERT_TRUE(commit(10));
  const std::string directory = coordinator.committed_directory();
  coordinator.resume_from(10, directory);
  coordinator.go_back(kFence + 1, "no such folder", now);
  EXPECT_THAT(coordinator.failure(now).value_or(""), ::testing::HasSubstr("there is none before it"));
  EXPECT_TRUE(std::filesystem::exists(directory));
}

TEST_F(CheckpointCoordinatorTest, BehindAStepOfThisStartTheOnlyCheckpointStays) {
  ASSERT_TRUE(commit(10));
  damage(10);
  coordinator.go_back(kFence + 1, "a byte changed", now);
  EXPECT_TRUE(coordinator.failure(now)) << "what was trained is not thrown away without a word";
  EXPECT_TRUE(std::filesystem::exists(run.checkpoints() + "/step_000010"));
}

TEST_F(CheckpointCoordinatorTest, ACommitThatTakesLongIsOpenUntilItEnds) {
  effects.is_disk_slow = true;
  EXPECT_FALSE(commit(10));
  EXPECT_TRUE(coordinator.newest_is_open());
  EXPECT_FALSE(coordinator.failure(now + 600s));
  EXPECT_TRUE(coordinator.failure(now + 601s));
  EXPECT_THAT(effects.take<CheckpointCommitted>(), IsEmpty()) << "the ranks' arenas are still needed if it fails";
  coordinator.abandon();
  effects.catch_up();
  EXPECT_FALSE(coordinator.newest_is_open());
  EXPECT_EQ(coordinator.committed_step(), 10) << "it was under way when the group broke";
  EXPECT_EQ(effects.take<CheckpointCommitted>().size(), 1u);
}

TEST_F(CheckpointCoordinatorTest, ACommitThatFailsAfterItsGroupBrokeIsNotTriedAgain) {
  ASSERT_TRUE(commit(10));
  std::filesystem::create_directories(run.checkpoints() + "/latest.tmp/in_the_way");
  effects.is_disk_slow = true;
  commit(20);
  coordinator.abandon();
  effects.catch_up();
  EXPECT_FALSE(coordinator.newest_is_open());
  EXPECT_FALSE(std::filesystem::exists(run.checkpoints() + "/step_000020"));
  coordinator.tick(now + 1h);
  EXPECT_EQ(coordinator.committed_step(), 10);
}

struct BestCheckpointTest : CheckpointCoordinatorTest {
  void evaluate(CheckpointCoordinator& by, std::int64_t step, double value) {
    by.on_evaluation({.actor = "learner/0", .fence = kFence, .step = step, .metrics = {{"eval/return", value}}});
  }
  /// A checkpoint whose evaluation ends before it is committed.
  void commit_evaluated(CheckpointCoordinator& by, std::int64_t step, double value) {
    by.on_snapshot({.actor = "", .rank = 0, .step = step, .fence = kFence, .handle = "h", .updates = step}, kFence,
                   true, {}, {}, now);
    evaluate(by, step, value);
    by.on_done(written(step), kFence, now);
  }
  /// Of a step that is not evaluated, or later.
  void commit_only(CheckpointCoordinator& by, std::int64_t step) {
    by.on_snapshot({.actor = "", .rank = 0, .step = step, .fence = kFence, .handle = "h", .updates = step}, kFence,
                   true, {}, {}, now);
    by.on_done(written(step), kFence, now);
  }
  std::string best() const {
    return std::filesystem::read_symlink(run.checkpoints() + "/" + kBestLink).filename().string();
  }
  CheckpointCoordinator keeping{{.world = 1, .keep = 1, .best_metric = "eval/return"}, run, *db, effects};
};

TEST_F(BestCheckpointTest, TheBestStaysBesideTheNewest) {
  const double values[] = {1, 5, 3, 4};
  for (int i = 0; i < 4; ++i) commit_evaluated(keeping, 10 * (i + 1), values[i]);
  EXPECT_THAT(catalogue(), ElementsAre(20, 40));
  EXPECT_EQ(best(), "step_000020");
  EXPECT_EQ(db->best().value()->value, 5);
  commit_evaluated(keeping, 50, 6);
  EXPECT_THAT(catalogue(), ElementsAre(50)) << "the best is the newest";
  EXPECT_EQ(best(), "step_000050");
}

TEST_F(BestCheckpointTest, AnEvaluationMayEndBehindItsCommit) {
  commit_evaluated(keeping, 10, 1);
  commit_evaluated(keeping, 20, -1);
  evaluate(keeping, 20, 2);
  EXPECT_EQ(best(), "step_000020") << "the later evaluation of a step is the one that counts";
  EXPECT_THAT(catalogue(), ElementsAre(20)) << "what was the best is not any more";
}

TEST_F(BestCheckpointTest, ACheckpointThatIsEvaluatedStaysUntilItsEvaluationIsKnown) {
  commit_evaluated(keeping, 10, 1);
  keeping.on_evaluation_begun(20);
  for (const std::int64_t step : {20, 30, 40}) commit_only(keeping, step);
  EXPECT_THAT(catalogue(), ElementsAre(10, 20, 40));
  evaluate(keeping, 20, 5);
  EXPECT_EQ(best(), "step_000020");
  EXPECT_THAT(catalogue(), ElementsAre(20, 40));
  keeping.on_evaluation_begun(40);
  for (const std::int64_t step : {50, 60}) commit_only(keeping, step);
  EXPECT_THAT(catalogue(), ElementsAre(20, 40, 60));
  evaluate(keeping, 40, 2);
  EXPECT_THAT(catalogue(), ElementsAre(20, 60)) << "it was not the best";
}

TEST_F(BestCheckpointTest, ACheckpointWhoseEvaluationIsDueStaysUntilALaterOneBegins) {
  CheckpointCoordinator beside{{.world = 1,
                                .keep = 1,
                                .best_metric = "eval/return",
                                .is_evaluated_beside = [](std::int64_t step) { return step % 20 == 0; }},
                               run,
                               *db,
                               effects};
  for (const std::int64_t step : {10, 20, 30}) commit_only(beside, step);
  EXPECT_THAT(catalogue(), ElementsAre(20, 30));
  beside.on_evaluation_begun(20);
  for (const std::int64_t step : {40, 50, 60, 70, 80, 90}) commit_only(beside, step);
  EXPECT_THAT(catalogue(), ElementsAre(20, 60, 80, 90)) << "two at most are on the way";
  evaluate(beside, 20, 1);
  beside.on_evaluation_begun(80);
  commit_only(beside, 100);
  EXPECT_THAT(catalogue(), ElementsAre(20, 80, 100)) << "60 was skipped";
  beside.on_evaluation({.actor = "evaluator/0", .fence = kFence, .step = 80, .metrics = {{"eval/lost", 7}}});
  EXPECT_THAT(catalogue(), ElementsAre(20, 100)) << "it is not compared";
}

TEST_F(BestCheckpointTest, NothingIsKeptForEvaluationsThatAreNotMade) {
  commit_evaluated(keeping, 10, 1);
  commit_only(keeping, 20);
  keeping.on_evaluation_begun(20);
  commit_evaluated(keeping, 30, -1);
  ASSERT_THAT(catalogue(), ElementsAre(10, 20, 30));
  keeping.forget_evaluations(20, kFence);
  EXPECT_THAT(catalogue(), ElementsAre(10, 20, 30)) << "the group went on from there";
  keeping.forget_evaluations(10, kFence);
  EXPECT_THAT(catalogue(), ElementsAre(10, 30));
}

TEST_F(BestCheckpointTest, OfLossesTheLeastIsTheBest) {
  CheckpointCoordinator least{
      {.world = 1, .keep = 1, .best_metric = "eval/return", .least_is_best = true}, run, *db, effects};
  commit_evaluated(least, 10, 1);
  commit_evaluated(least, 20, 5);
  commit_evaluated(least, 30, 3);
  EXPECT_THAT(catalogue(), ElementsAre(10, 30));
}

TEST_F(BestCheckpointTest, ARunThatGoesOnKnowsItsBest) {
  commit_evaluated(keeping, 10, 5);
  commit_evaluated(keeping, 20, 1);
  CheckpointCoordinator resumed{{.world = 1, .keep = 1, .best_metric = "eval/return"}, run, *db, effects};
  resumed.resume_from(20, run.checkpoints() + "/step_000020");
  resumed.settle().value();
  commit_evaluated(resumed, 30, 3);
  EXPECT_THAT(catalogue(), ElementsAre(10, 30));
  EXPECT_EQ(best(), "step_000010");
}

TEST_F(BestCheckpointTest, WhatIsNotThereAnyMoreIsNotTheBest) {
  commit_evaluated(keeping, 10, 5);
  remove_checkpoint(run.checkpoints() + "/step_000010");
  commit_evaluated(keeping, 20, 1);
  EXPECT_EQ(best(), "step_000020");
}

TEST_F(BestCheckpointTest, AnEvaluationWithoutACheckpointOrANumberCountsForNothing) {
  commit_evaluated(keeping, 10, 1);
  evaluate(keeping, 20, 9);  // its checkpoint is given up
  commit_evaluated(keeping, 30, std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(best(), "step_000010");
  EXPECT_THAT(catalogue(), ElementsAre(10, 30));
}

TEST_F(BestCheckpointTest, AnEvaluationThatLostEpisodesIsNotCompared) {
  commit_evaluated(keeping, 10, -200);
  commit_evaluated(keeping, 20, -210);
  keeping.on_evaluation(
      {.actor = "learner/0", .fence = kFence, .step = 20, .metrics = {{"eval/return", -100}, {"eval/lost", 7}}});
  EXPECT_EQ(best(), "step_000010");
}

TEST_F(BestCheckpointTest, ValuesOfAnotherMetricAreNotCompared) {
  commit_evaluated(keeping, 10, 300);
  CheckpointCoordinator by_success{{.world = 1, .keep = 1, .best_metric = "eval/success_once"}, run, *db, effects};
  by_success.resume_from(10, run.checkpoints() + "/step_000010");
  by_success.settle().value();
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(run.checkpoints() + "/" + kBestLink)));
  commit_evaluated(by_success, 20, 0);
  by_success.on_evaluation(
      {.actor = "learner/0", .fence = kFence, .step = 20, .metrics = {{"eval/success_once", 0.5}}});
  EXPECT_EQ(best(), "step_000020");
}

TEST_F(BestCheckpointTest, ADamagedBestIsTheBestNoLonger) {
  commit_evaluated(keeping, 10, 1);
  commit_evaluated(keeping, 20, 2);
  commit(30);
  ASSERT_EQ(best(), "step_000020");
  damage(20);
  std::filesystem::rename(run.checkpoints() + "/step_000020", run.checkpoints() + "/step_000020.damaged-1");
  CheckpointCoordinator resumed{{.world = 1, .keep = 1, .best_metric = "eval/return"}, run, *db, effects};
  resumed.resume_from(30, run.checkpoints() + "/step_000030");
  resumed.settle().value();
  EXPECT_FALSE(db->best().value());
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(run.checkpoints() + "/" + kBestLink)));
}

TEST_F(BestCheckpointTest, ACommitThatOutlivesItsGroupHasItsEvaluation) {
  effects.is_disk_slow = true;
  commit_evaluated(keeping, 10, 1);
  keeping.abandon();
  effects.is_disk_slow = false;
  effects.catch_up();
  EXPECT_EQ(best(), "step_000010");
}

TEST_F(CheckpointCoordinatorTest, AStateOfTheFirstVersionIsBroughtUpToDate) {
  ASSERT_TRUE(commit(10));
  db.reset();
  sqlite3* file = nullptr;
  ASSERT_EQ(sqlite3_open(run.state_db().c_str(), &file), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(file, "DROP TABLE commit_intent; DROP TABLE best; PRAGMA user_version = 1;", nullptr, nullptr,
                         nullptr),
            SQLITE_OK);
  sqlite3_close(file);
  db = StateDb::open(run.state_db()).value();
  EXPECT_FALSE(db->unfinished_commit().value());
  EXPECT_FALSE(db->best().value());
  EXPECT_EQ(db->committed_step().value(), 10);
}

}  // namespace
}  // namespace troupe::workers
