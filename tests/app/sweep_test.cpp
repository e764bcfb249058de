// `troupe sweep` and `troupe compare`: what they run, go on with and find.
#include <thread>

#include "tests/app/rl_fixture.h"

namespace troupe::app {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SweepTest : public RlRunTest {
 protected:
  /// Two seeds of two rates.
  Words sweep(const Words& more = {}) const {
    Words words = small("runs", {"training.steps=3", "job.name=cp"});
    words[0] = "sweep";
    return words + Words{"--seeds", "0..1", "optimizer.lr=1e-3,1e-6", "--jobs", "2"} + more;
  }
};

TEST_F(SweepTest, EverySeedOfEveryValueIsARunAndTheSameCommandFindsThemDone) {
  const ProgramEnd end = troupe(sweep({"--episodes", "3"}));
  expect_end(end, 0,
             {"sweep of cp: 4 runs, 2 at a time", "cp-seed1-lr1e-6 done in", "[4/4]", "| cp-lr1e-3 ", "| cp-lr1e-6 ",
              "evaluation: return", "sweep.md, sweep.html, sweep.png"});
  const std::string folder = dir_ / "runs/cp-sweep-lr";
  EXPECT_THAT(text_of(folder + "/sweep.md"), HasSubstr("| cp-lr1e-6 | evaluation: return | 2 seeds |"));
  EXPECT_THAT(text_of(folder + "/sweep.html"), HasSubstr("Settings that differ"));
  EXPECT_EQ(text_of(folder + "/sweep.png").substr(1, 3), "PNG");
  EXPECT_THAT(text_of(folder + "/logs/cp-seed0-lr1e-3.log"), HasSubstr("RUN COMPLETE"));
  const auto runs_there = [&] {
    const auto listed = troupe({"runs", "--run-root", dir_ / "runs"}).out;
    return std::count(listed.begin(), listed.end(), '\n') - 1;
  };
  EXPECT_EQ(runs_there(), 4);
  // again, and with more seeds: what is complete stays, what is new is trained
  expect_end(troupe(sweep()), 0, {"4 runs", "[4/4]"});
  EXPECT_EQ(runs_there(), 4);
  Words more = sweep();
  *std::find(more.begin(), more.end(), "0..1") = "0..2";
  expect_end(troupe(more), 0, {"6 runs", "cp-seed2-lr1e-6 done in"});
  EXPECT_EQ(runs_there(), 6);
  // of evaluations the newest counts, which has the greatest step
  const auto evaluations = std::filesystem::directory_iterator(dir_ / "runs/cp-seed0-lr1e-3")->path() / "eval";
  std::filesystem::copy(evaluations / "step_000003", evaluations / "step_1000000");
  std::filesystem::create_directory(evaluations / "step_999999");
  std::ofstream(evaluations / "step_999999/eval.json") << "not to be read";
  expect_end(troupe({"compare", "cp-seed0-lr1e-3", "cp-seed1-lr1e-3", "--run-root", dir_ / "runs"}), 0,
             {"evaluation: return"});
  // a setting of all runs is not in their names
  expect_end(troupe(sweep({"algorithm.gamma=0.5"})), 2, {},
             {"cp-seed0-lr1e-3 is there with other settings", "another job.name", "algorithm.gamma"});
}

TEST_F(SweepTest, AnInterruptedSweepGoesOnWhereItWas) {
  const Words words = sweep({"training.steps=30", "checkpoint.interval=1"});
  Program program(words, {.cwd = dir_.path(), .env = {}, .deadline = 150s});
  ASSERT_TRUE(program.wait_for_text("what they say is in")) << program.so_far().text();
  const std::string checkpoints = dir_ / "runs/cp-seed0-lr1e-3";
  const auto has_checkpoint = [&] {
    for (const auto& run : std::filesystem::directory_iterator(checkpoints)) {
      if (std::filesystem::exists(run.path() / "checkpoints/latest")) return true;
    }
    return false;
  };
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (!std::filesystem::exists(checkpoints) || !has_checkpoint()) {
    ASSERT_LT(std::chrono::steady_clock::now(), until) << "no checkpoint";
    std::this_thread::yield();
  }
  program.send_signal(SIGINT);
  const ProgramEnd end = program.wait();
  expect_end(end, 130, {"the same command goes on"});
  expect_end(troupe(words), 0, {"[4/4]"});
  EXPECT_THAT(text_of(dir_ / "runs/cp-sweep-lr/logs/cp-seed0-lr1e-3.log"),
              AllOf(HasSubstr("RUN STOPPED"), HasSubstr("RUN COMPLETE")));
}

TEST_F(SweepTest, MistakesAreFoundBeforeAnythingStarts) {
  expect_end(troupe(sweep({"training.steps=3,x"})), 2, {}, {"training.steps", "x"});
  EXPECT_FALSE(std::filesystem::exists(dir_ / "runs"));
  Words words = sweep();
  *std::find(words.begin(), words.end(), "0..1") = "few";
  expect_end(troupe(words), 2, {}, {"--seeds few: 'few' is no seed; wanted numbers and ranges such as 3,8..11"});
  expect_end(troupe({"sweep", "quickstart:sft", "--seeds", "0", "--episodes", "3"}), 2, {},
             {"eval.open_loop.at_end=true"});
}

TEST_F(SweepTest, ARunThatFailsIsToldAndTheOthersAreReported) {
  // A file where the run's folder should be.
  std::filesystem::create_directories(dir_ / "runs");
  std::ofstream(dir_ / "runs/cp-seed0-lr1e-6") << "in the way";
  const ProgramEnd end = troupe(sweep());
  expect_end(end, 4, {"cp-seed0-lr1e-6 failed (exit code", "| cp-lr1e-6 |    1 |"}, {"cp-seed0-lr1e-6"});
}

TEST_F(SweepTest, CompareTakesRunsByNameFolderOrDirectory) {
  const ProgramEnd swept = troupe(sweep());
  ASSERT_EQ(swept.exit_code, 0) << swept.text();
  const std::string root = dir_ / "runs";
  const ProgramEnd end = troupe({"compare", "cp-seed0-lr1e-3", root + "/cp-seed1-lr1e-3", root + "/cp-seed0-lr1e-6",
                                 "cp-seed1-lr1e-6", "--run-root", root, "--out", dir_ / "page.html"});
  expect_end(end, 0, {"| cp-lr1e-3 |    2 |", "each group minus cp-lr1e-3", "| optimizer.lr |", "written: "});
  EXPECT_THAT(text_of(dir_ / "page.html"), HasSubstr("95 % bootstrap interval"));
  expect_end(troupe({"compare", "latest", "--run-root", root}), 2, {}, {"no run of that name"});
  expect_end(troupe({"compare", "cp-seed0-lr1e-3", "--run-root", root}), 2, {}, {"name another"});
  expect_end(troupe({"compare", "cp-seed0-lr1e-3", root + "/cp-seed0-lr1e-3", "--run-root", root}), 2, {}, {"again"});
  std::filesystem::remove(root + "/latest/metrics.jsonl");
  expect_end(troupe({"compare", root + "/latest", "cp-seed0-lr1e-3", "--run-root", root}), 2, {},
             {"metrics.jsonl: not there, so there is nothing to compare"});
}

}  // namespace
}  // namespace troupe::app
