#include "workers/sweep/sweep_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/support/scratch_folder.h"

namespace troupe::workers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

/// Runs of a program of the test's own, a shell script whose words are those of `troupe`.
class SweepRunnerTest : public ::testing::Test {
 protected:
  /// `body` sees the verb as $1 and the run's name as $name.
  void write_program(const std::string& body) {
    std::ofstream(dir_ / "troupe")
        << "#!/bin/sh\nname=$2\nfor word; do case $word in job.name=*) name=${word#job.name=};; "
           "esac; done\necho \"$1 $name\" >> "
        << dir_ / "calls"
        << "\n"
        << body << "\n";
    std::filesystem::permissions(dir_ / "troupe", std::filesystem::perms::owner_all);
  }
  static SweptRun run_named(const std::string& name) { return {.name = name, .overrides = {"job.name=" + name}}; }
  SweepOptions options() const { return {.program = dir_ / "troupe", .job = "job.yaml", .logs = dir_ / "logs"}; }
  std::vector<std::string> lines_of(const std::string& file) const {
    std::ifstream in(dir_ / file);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }

  ScratchFolder dir_;
  std::atomic<bool> interrupted_ = false;
};

TEST_F(SweepRunnerTest, RunsThenEvaluatesEachAndGoesOnPastAFailure) {
  write_program("echo \"I am $name\"; [ \"$name\" != b ] || { echo it broke; exit 4; }");
  SweepOptions o = options();
  o.episodes = 3;
  std::vector<SweepEnd> ends;
  EXPECT_TRUE(run_sweep({run_named("a"), run_named("b"), run_named("c")}, o, interrupted_,
                        [&](const SweepEnd& end) { ends.push_back(end); }));
  EXPECT_THAT(lines_of("calls"), ElementsAre("run a", "eval a", "run b", "run c", "eval c"));
  ASSERT_EQ(ends.size(), 3u);
  EXPECT_TRUE(ends[0].is_done && ends[2].is_done);
  EXPECT_FALSE(ends[1].is_done);
  EXPECT_EQ(ends[1].how, "exit code 4");
  EXPECT_THAT(ends[1].tail, HasSubstr("it broke"));
  EXPECT_THAT(lines_of("logs/c.log"), ElementsAre("I am c", "I am c"));
}

TEST_F(SweepRunnerTest, AsManyRunAtATimeAsAreAskedFor) {
  // Each waits until both are there; one at a time would wait forever.
  write_program("touch " + dir_ / "$name" + "; until [ -e " + dir_ / "a" + " ] && [ -e " + dir_ / "b" +
                " ]; do sleep 0.01; done");
  SweepOptions o = options();
  o.at_once = 2;
  std::vector<std::string> ends;
  EXPECT_TRUE(run_sweep({run_named("a"), run_named("b")}, o, interrupted_,
                        [&](const SweepEnd& end) { ends.push_back(end.name); }));
  EXPECT_THAT(ends, UnorderedElementsAre("a", "b"));
}

TEST_F(SweepRunnerTest, AnInterruptionEndsWhatRunsAndStartsNothingElse) {
  write_program("[ \"$name\" = a ] && exit 0; trap 'echo asked to end; exit 130' TERM; while :; do sleep 0.01; done");
  std::vector<std::string> ends;
  EXPECT_FALSE(
      run_sweep({run_named("a"), run_named("b"), run_named("c")}, options(), interrupted_, [&](const SweepEnd& end) {
        ends.push_back(end.name);
        interrupted_ = true;
      }));
  EXPECT_THAT(ends, ElementsAre("a"));
  EXPECT_THAT(lines_of("calls"), ElementsAre("run a"));
  // b is under way when the interruption comes
  interrupted_ = false;
  std::thread signal([&] {
    while (lines_of("calls").size() < 2) std::this_thread::yield();
    interrupted_ = true;
  });
  EXPECT_FALSE(run_sweep({run_named("b"), run_named("c")}, options(), interrupted_, [](const SweepEnd&) {}));
  signal.join();
  EXPECT_THAT(lines_of("calls"), ElementsAre("run a", "run b"));
}

TEST_F(SweepRunnerTest, AProgramThatIsNotThereIsAFailureOfEveryRun) {
  std::vector<std::string> hows;
  EXPECT_TRUE(run_sweep({run_named("a"), run_named("b")}, options(), interrupted_,
                        [&](const SweepEnd& end) { hows.push_back(end.how); }));
  EXPECT_THAT(hows, ElementsAre(HasSubstr("cannot start a"), HasSubstr("cannot start b")));
}

}  // namespace
}  // namespace troupe::workers
