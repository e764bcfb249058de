#include "workers/checkpoint/run_directory.h"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/support/scratch_folder.h"

namespace troupe::workers {
namespace {

using ::testing::HasSubstr;

class RunDirectoryTest : public ::testing::Test {
 protected:
  void make_run(const std::string& name, const std::string& id) {
    const auto run = RunDirectory::create(runs_, name, id);
    ASSERT_TRUE(run) << run.error().message();
    std::ofstream(run->config()) << "version: 1\n";
    ASSERT_TRUE(run->make_latest(runs_));
  }

  ScratchFolder dir_;
  const std::string runs_ = dir_ / "runs";
};

TEST_F(RunDirectoryTest, ANameFindsItsNewestRun) {
  make_run("small", "20260101-000000-a");
  make_run("small", "20260102-000000-b");
  EXPECT_EQ(find_run("small", runs_)->id(), "20260102-000000-b");
  EXPECT_EQ(find_run("small/20260101-000000-a", runs_)->id(), "20260101-000000-a");
}

TEST_F(RunDirectoryTest, AnUnknownNameIsAnsweredWithTheRunsThereAre) {
  make_run("lift", "1");
  make_run("quickstart-sft", "2");
  make_run("quickstart-rl", "3");
  std::filesystem::create_directories(runs_ + "/quickstart-data/meta");
  const auto missing = find_run("quickstart-sff", runs_);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), Errc::not_found);
  EXPECT_THAT(missing.error().message(),
              HasSubstr("quickstart-sff: no run there (no config.resolved.yaml), and no run of that name under " +
                        runs_ + "\n      runs in " + runs_ +
                        ", nearest first:\n        quickstart-sft\n        quickstart-rl\n        lift"));
  EXPECT_EQ(missing.error().message().find("quickstart-data"), std::string::npos) << "it holds no run";
}

TEST_F(RunDirectoryTest, AnEmptyFolderSaysThatThereAreNoRuns) {
  const auto missing = find_run("", runs_);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message(), HasSubstr("there are no runs in " + runs_ + "; --run-root names another"));
}

}  // namespace
}  // namespace troupe::workers
