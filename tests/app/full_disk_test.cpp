// Checkpoints that cannot be written: tried again, given up, and never harming older ones.
#include <sys/mount.h>

#include <cerrno>
#include <cstring>

#include "tests/app/run_fixture.h"

namespace troupe::app {
namespace {

using ::testing::HasSubstr;

using FullDiskTest = RunTest;

TEST_F(FullDiskTest, AFailedWriteIsRepeatedAndTheRunSucceeds) {
  const auto end = run_small({}, {{"TROUPE_FAULT", "checkpoint.write@step_000010:enospc"}});
  EXPECT_EQ(end.exit_code, 0) << end.text();
  EXPECT_THAT(end.out, HasSubstr("checkpoint of step 10 failed (attempt 1 of 3)"));
  EXPECT_THAT(end.out, HasSubstr("No space left on device"));
  expect_verified(80);
}

TEST_F(FullDiskTest, ACheckpointThatIsGivenUpDoesNotStopTraining) {
  const auto end = run_small({}, {{"TROUPE_FAULT", "checkpoint.write@step_000010:enospc:3"}});
  EXPECT_EQ(end.exit_code, 0) << end.text();
  EXPECT_THAT(end.err, HasSubstr("checkpoint of step 10 given up"));
  EXPECT_THAT(end.err, HasSubstr("rank-"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "runs/latest/checkpoints/step_000010"));
  expect_verified(80);
}

TEST_F(FullDiskTest, LosingTheLastCheckpointFailsTheRunAndKeepsTheOneBefore) {
  const auto end = run_small({}, {{"TROUPE_FAULT", "checkpoint.write@step_000020:enospc:100"}});
  EXPECT_EQ(end.exit_code, 4) << end.text();
  EXPECT_THAT(end.err, HasSubstr("step_000020"));
  EXPECT_THAT(end.err, HasSubstr("step 10 is the newest on disk"));
  expect_verified(40);
  const auto rest = run_small({"--resume", "auto"});
  EXPECT_EQ(rest.exit_code, 0) << rest.text();
  EXPECT_THAT(rest.out, HasSubstr("resuming at step 10"));
  expect_verified(80);
}

/// A small file system of its own at `runs`.
class TmpfsMount {
 public:
  explicit TmpfsMount(std::string path) : path_(std::move(path)) {
    std::filesystem::create_directories(path_);
    if (::mount("tmpfs", path_.c_str(), "tmpfs", 0, "size=1600k") != 0) error_ = errno;
  }
  ~TmpfsMount() {
    if (error_ == 0) ::umount2(path_.c_str(), MNT_DETACH);
  }
  int error() const { return error_; }

 private:
  const std::string path_;
  int error_ = 0;
};

TEST_F(FullDiskTest, AReallyFullDiskNamesTheFileAndKeepsEarlierCheckpoints) {
  const TmpfsMount disk(dir_ / "runs");
  if (disk.error() != 0)
    GTEST_SKIP() << "AReallyFullDiskNamesTheFileAndKeepsEarlierCheckpoints: cannot mount a tmpfs here: "
                 << std::strerror(disk.error());
  const auto end = run_small({"checkpoint.interval=5", "checkpoint.keep=100"});
  EXPECT_EQ(end.exit_code, 4) << end.text();
  EXPECT_THAT(end.err, HasSubstr("No space left on device"));
  EXPECT_THAT(end.err, HasSubstr("checkpoints/step_"));
  const auto verify = troupe({"verify"});
  EXPECT_EQ(verify.exit_code, 0) << verify.text();
  EXPECT_THAT(verify.out, HasSubstr("checkpoint step 5 "));
  EXPECT_THAT(verify.out, HasSubstr("lost 0  doubled 0"));
}

}  // namespace
}  // namespace troupe::app
