#include "app/disk_room.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/support/bias_checkpoint.h"
#include "tests/support/scratch_folder.h"
#include "workers/checkpoint/commit.h"

namespace troupe::app {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::int64_t kTooMuch = std::int64_t{1} << 60;

/// Two ranks on two machines, and checkpoints of next to nothing.
struct DiskRoomTest : ::testing::Test {
  DiskRoomTest() {
    job.job.run_root = scratch / "not/yet/there";
    plan.disk_bytes_per_checkpoint = 1;
    plan.batch.data_ranks = 2;
    for (const std::int64_t rank : {0, 1}) {
      plan.actors.push_back(
          {.name = "", .role = "learner", .process_rank = rank, .node = rank, .cpus = 1, .isolation = "process"});
    }
  }
  std::vector<RoomFinding> look() const { return look_at_room(job, run, plan); }
  void commit(const Manifest& manifest) const {
    const std::string written = run->checkpoints() + "/" + checkpoint_tmp_name(manifest.step, manifest.fence);
    testing::write_bias_checkpoint(written, manifest);
    commit_checkpoint(run->checkpoints(), written, manifest.step).value();
  }
  std::string text() const {
    const auto findings = look();
    return findings.size() == 1 ? findings[0].error.message() : std::to_string(findings.size()) + " findings";
  }

  const testing::ScratchFolder scratch;
  JobConfig job;
  Plan plan;
  std::optional<RunDirectory> run;
};

TEST_F(DiskRoomTest, WhatFitsIsNotMentioned) { EXPECT_THAT(look(), IsEmpty()); }

TEST_F(DiskRoomTest, RoomForOneCheckpointIsAWarningAndLessARefusal) {
  job.checkpoint.keep = job.training.steps = std::int64_t{1} << 40;
  job.checkpoint.interval = 1;
  plan.disk_bytes_per_checkpoint = std::int64_t{1} << 20;
  ASSERT_THAT(look(), SizeIs(1));
  EXPECT_TRUE(look()[0].is_warning);
  job.checkpoint.keep = 1;
  plan.disk_bytes_per_checkpoint = kTooMuch;
  ASSERT_THAT(look(), SizeIs(1));
  EXPECT_FALSE(look()[0].is_warning);
  EXPECT_THAT(text(), AllOf(HasSubstr("job.run_root: " + scratch.path() + " has "), HasSubstr("a checkpoint takes ")));
}

TEST_F(DiskRoomTest, TheFrozenBaseCountsUntilTheRunHasIt) {
  job.precision.param = "bf16";
  plan.frozen_parameters = kTooMuch / 2;
  EXPECT_THAT(text(), HasSubstr("the frozen weights beside them take 1"));
  EXPECT_FALSE(look()[0].is_warning) << "it comes before the first checkpoint";
  run = RunDirectory::create(scratch.path(), "test", "run").value();
  commit(testing::bias_manifest(10, 1, 1));
  EXPECT_THAT(look(), SizeIs(1)) << "a checkpoint that names none";
  Manifest manifest = testing::bias_manifest(20, 1, 1);
  manifest.base = "0123456789abcdef0123456789abcdef";
  ManifestUnit frozen = manifest.units[0];
  frozen.name = frozen.params[0].name = "frozen";
  frozen.trainable = false;
  frozen.in_base = true;
  manifest.units.push_back(frozen);
  commit(manifest);
  EXPECT_THAT(look(), IsEmpty());
}

TEST_F(DiskRoomTest, WhatIsNotTrainedOfAPolicyIsNoBase) {
  job.job.kind = JobKind::rl;
  plan.frozen_parameters = kTooMuch;
  EXPECT_THAT(look(), IsEmpty());
}

TEST_F(DiskRoomTest, TheReplayLogCountsLessWhatOfItLiesThere) {
  job.job.kind = JobKind::rl;
  job.algorithm.name = Algorithm::sac;
  EXPECT_THAT(look(), IsEmpty());
  plan.sample_bytes = std::int64_t{1} << 40;
  EXPECT_THAT(text(), AllOf(HasSubstr("the replay log takes at most "), HasSubstr("algorithm.sac.replay_log_bytes")));
  EXPECT_TRUE(look()[0].is_warning) << "the log grows for as long as the job runs";
  run = RunDirectory::create(scratch.path(), "test", "run").value();
  const std::string replay = run->path("replay");
  std::filesystem::create_directories(replay);
  std::ofstream(replay + "/step-000000000-rank-0.items").close();
  std::filesystem::resize_file(replay + "/step-000000000-rank-0.items", std::uintmax_t{1} << 41);  // sparse
  EXPECT_THAT(look(), SizeIs(1));
  job.training.steps = 1;
  job.env.num_envs = job.env.blocks = 1;
  job.rollout.commit_every = job.rollout.steps = 8;
  EXPECT_THAT(look(), IsEmpty()) << "one item, and more than that lies there";
}

TEST_F(DiskRoomTest, OffloadCountsOnTheDiskThatItsFolderLiesOn) {
  plan.learner_memory.offload_bytes = kTooMuch;
  EXPECT_THAT(text(), AllOf(HasSubstr("job.run_root: "), HasSubstr("what is offloaded takes ")));
  job.offload.folder = scratch.path();
  EXPECT_THAT(text(), AllOf(HasSubstr("job.run_root: "), HasSubstr("what is offloaded takes ")));
  EXPECT_FALSE(look()[0].is_warning);
  job.offload.folder = "/proc/none";
  EXPECT_THAT(text(), AllOf(HasSubstr("offload.folder: /proc has 0 B free; "), Not(HasSubstr("job.run_root"))));
  EXPECT_FALSE(look()[0].is_warning);
}

TEST_F(DiskRoomTest, SnapshotsOfThisMachinesRanksLieWithWhatIsOffloaded) {
  plan.learner_memory.offload_bytes = 1 << 20;
  plan.learner_memory.snapshot_bytes = 1 << 20;
  job.offload.folder = "/proc";
  EXPECT_THAT(text(), HasSubstr("what this machine's ranks keep there takes 2.0 MiB"));
}

}  // namespace
}  // namespace troupe::app
