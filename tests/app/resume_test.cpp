// A run that stops and goes on ends where one that never stopped ends.
#include <csignal>

#include "tests/app/run_fixture.h"

namespace troupe::app {
namespace {

class ResumeTest : public RunTest {
 protected:
  void expect_two_halves_equal_the_whole(const std::vector<std::string>& mode) {
    const auto whole = run_small(mode + std::vector<std::string>{"job.run_root=whole"});
    ASSERT_TRUE(succeeded(whole));
    ASSERT_TRUE(succeeded(run_small(mode + std::vector<std::string>{"training.steps=10"})));
    expect_verified(40);
    EXPECT_FALSE(exported() == exported("whole"));
    expect_end(run_small(mode + std::vector<std::string>{"--resume", "auto"}), 0, {"resuming at step 10"});
    EXPECT_EQ(num_runs(), 1u);
    expect_verified(80);
    EXPECT_TRUE(exported() == exported("whole"));
    EXPECT_EQ(curve("train/loss"), curve("train/loss", "whole"));
  }
};

TEST_F(ResumeTest, TwoHalvesOnThreadsEqualTheWholeToTheBit) { expect_two_halves_equal_the_whole({}); }

TEST_F(ResumeTest, TwoHalvesInProcessesEqualTheWholeToTheBit) { expect_two_halves_equal_the_whole(in_processes()); }

TEST_F(ResumeTest, ACheckpointOfTwoRanksGoesOnOnOneAndOnThree) {
  const std::vector<std::string> batch = {"training.global_batch_size=12"};
  ASSERT_TRUE(succeeded(run_small(batch + std::vector<std::string>{"training.steps=4"})));
  expect_end(run_small(batch + std::vector<std::string>{"training.steps=8", "--resume", "auto",
                                                        "cluster.component_placement.learner=0"}),
             0, {"resuming at step 4"});
  expect_verified(96);
  expect_end(run_small(batch + std::vector<std::string>{"training.steps=12", "--resume", "auto",
                                                        "cluster.component_placement.learner=0:0-2"}),
             0, {"resuming at step 8"});
  expect_verified(144);
  EXPECT_EQ(curve("train/loss").size(), 12u);
}

TEST_F(ResumeTest, AFinishedRunShowsItsReportAgain) {
  ASSERT_TRUE(succeeded(run_small({"training.steps=4"})));
  const std::string report = text_of(dir_ / "runs/latest/report.txt");
  expect_end(run_small({"training.steps=4", "--resume", "auto"}), 0, {"RUN COMPLETE small", report});
  EXPECT_EQ(num_runs(), 1u);
  ASSERT_TRUE(succeeded(run_small({"training.steps=4", "--resume", "never"})));
  EXPECT_EQ(num_runs(), 2u);
}

TEST_F(ResumeTest, ANamedRunGoesOn) {
  ASSERT_TRUE(succeeded(run_small({"training.steps=2"})));
  const std::string first = std::filesystem::canonical(dir_ / "runs/latest").filename();
  ASSERT_TRUE(succeeded(run_small({"training.steps=2"})));
  EXPECT_EQ(num_runs(), 2u);
  expect_end(run_small({"training.steps=4", "--resume", "runs/small/" + first}), 0, {"resuming at step 2"});
  EXPECT_EQ(std::filesystem::canonical(dir_ / "runs/latest").filename(), first);
  expect_end(run_small({"--resume", "runs/small/none"}), 2, {}, {"--resume", "runs/small/none"});
}

TEST_F(ResumeTest, ASecondRunOfARunningNameIsRefused) {
  Program job({"run", small_job(), "training.steps=100000", "checkpoint.interval=100000"}, options());
  ASSERT_TRUE(job.wait_for_text("5/100000")) << job.so_far().text();
  const std::string pid = "pid " + std::to_string(job.pid());
  for (const std::string resume : {"never", "auto"}) {
    const auto second = run_small({"training.steps=100000", "checkpoint.interval=100000", "--resume", resume});
    expect_end(second, 2, {}, {"small is running (" + pid + ", step ", " of 100000)", "another job.name"});
  }
  expect_end(run_small({"--dry-run"}), 2, {}, {pid});
  expect_end(troupe({"plan", small_job()}), 0, {"OK (exit 0)"}, {"warning: job.name: small is running"});
  EXPECT_EQ(num_runs(), 1u);
  job.send_signal(SIGKILL);
  job.wait();
  expect_end(troupe({"plan", small_job()}), 0, {"OK (exit 0)"});
  ASSERT_TRUE(succeeded(run_small({"--resume", "never"}))) << "the lock ends with the process";
}

TEST_F(ResumeTest, AChangedKeyIsRefusedByName) {
  ASSERT_TRUE(succeeded(run_small({"training.steps=4"})));
  expect_end(run_small({"training.steps=8", "optimizer.lr=0.5", "--resume", "auto"}), 2, {}, {"optimizer.lr"});
  EXPECT_EQ(num_runs(), 1u);
}

TEST_F(ResumeTest, ASignalWritesACheckpointAndTheRunGoesOnFromIt) {
  const std::vector<std::string> words = {"run", small_job(), "training.steps=200", "lr_scheduler.total_steps=200",
                                          "checkpoint.interval=1000"};
  ASSERT_TRUE(succeeded(troupe(words + std::vector<std::string>{"job.run_root=whole"})));
  Program job(words, options());
  ASSERT_TRUE(job.wait_for_text("step   5/200")) << job.so_far().text();
  job.send_signal(SIGINT);
  expect_end(job.wait(), 130, {"SIGINT", "latest -> step_"});
  EXPECT_THAT(text_of(dir_ / "runs/latest/report.html"), ::testing::HasSubstr("RUN STOPPED"));
  expect_end(troupe(words), 2, {}, {"--resume auto"});
  expect_end(troupe(words + std::vector<std::string>{"--resume", "auto"}), 0, {"resuming at step"});
  EXPECT_EQ(num_runs(), 1u);
  expect_verified(800);
  EXPECT_TRUE(exported() == exported("whole"));
}

}  // namespace
}  // namespace troupe::app
