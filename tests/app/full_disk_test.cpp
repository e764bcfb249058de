// Checkpoints that cannot be written: tried again, given up, and never harming older ones.
#include <cstring>

#include "tests/app/run_fixture.h"
#include "tests/support/tmpfs_mount.h"

namespace troupe::app {
namespace {

using FullDiskTest = RunTest;

TEST_F(FullDiskTest, AFailedWriteIsRepeatedAndTheRunSucceeds) {
  expect_end(run_small({}, {{"TROUPE_FAULT", "checkpoint.write@step_000010:enospc"}}), 0,
             {"checkpoint of step 10 failed (attempt 1 of 3)", "No space left on device"});
  expect_verified(80);
}

TEST_F(FullDiskTest, ACheckpointThatIsGivenUpDoesNotStopTraining) {
  expect_end(run_small({}, {{"TROUPE_FAULT", "checkpoint.write@step_000010:enospc:3"}}), 0, {},
             {"checkpoint of step 10 given up", "rank-"});
  EXPECT_FALSE(std::filesystem::exists(dir_ / "runs/latest/checkpoints/step_000010"));
  expect_verified(80);
}

TEST_F(FullDiskTest, LosingTheLastCheckpointFailsTheRunAndKeepsTheOneBefore) {
  expect_end(run_small({}, {{"TROUPE_FAULT", "checkpoint.write@step_000020:enospc:100"}}), 4, {},
             {"step_000020", "step 10 is the newest on disk"});
  expect_verified(40);
  expect_end(run_small({"--resume", "auto"}), 0, {"resuming at step 10"});
  expect_verified(80);
}

TEST_F(FullDiskTest, AReallyFullDiskNamesTheFileAndKeepsEarlierCheckpoints) {
  const TmpfsMount disk(dir_ / "runs", "1600k");
  if (disk.error() != 0)
    GTEST_SKIP() << "AReallyFullDiskNamesTheFileAndKeepsEarlierCheckpoints: cannot mount a tmpfs here: "
                 << std::strerror(disk.error());
  expect_end(run_small({"checkpoint.interval=5", "checkpoint.keep=100"}), 4, {},
             {"No space left on device", "checkpoints/step_"});
  expect_end(troupe({"verify"}), 0, {"checkpoint step 5 ", "lost 0  doubled 0"});
}

TEST_F(FullDiskTest, TooLittleRoomForAllCheckpointsIsAWarningAndForOneARefusal) {
  const std::vector<std::string> words = {small_job(), "checkpoint.interval=5", "checkpoint.keep=100"};
  for (const auto& [size, code] : {std::pair{"1600k", 0}, std::pair{"100k", 3}}) {
    const TmpfsMount disk(dir_ / "runs", size);
    if (disk.error() != 0)
      GTEST_SKIP() << "TooLittleRoomForAllCheckpointsIsAWarningAndForOneARefusal: cannot mount a tmpfs here: "
                   << std::strerror(disk.error());
    const auto plan = troupe(std::vector<std::string>{"plan"} + words);
    expect_end(plan, 0, {"OK (exit 0)"}, {"warning: job.run_root: ", " free; a checkpoint takes "});
    const std::string text = plan.err.substr(plan.err.find("job.run_root: "));
    auto run = std::vector<std::string>{"run"} + words;
    if (code == 0) run.push_back("--dry-run");
    expect_end(troupe(run), code, {}, {text.substr(0, text.find('\n'))});
    EXPECT_TRUE(std::filesystem::is_empty(dir_ / "runs"));
  }
}

}  // namespace
}  // namespace troupe::app
