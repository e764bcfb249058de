// What a person sees: a run on a terminal, watched from another one, and listed afterwards.
#include "tests/app/run_fixture.h"
#include "tests/support/pty_program.h"

namespace troupe::app {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

class TerminalTest : public RunTest {
 protected:
  using Words = std::vector<std::string>;
  using Environment = std::map<std::string, std::string>;
  std::unique_ptr<PtyProgram> on_terminal(const Words& words, Environment env) const {
    env["XDG_RUNTIME_DIR"] = dir_ / "runtime";
    return std::make_unique<PtyProgram>(words, dir_.path(), env);
  }
  static Words long_job() {
    return {"run", small_job(), "training.steps=100000", "lr_scheduler.total_steps=100000",
            "checkpoint.interval=100000"};
  }
};

TEST_F(TerminalTest, ALiveLineStaysBelowAndCtrlCEndsTheRunWithACheckpoint) {
  const auto job = on_terminal(long_job(), {{"TERM", "xterm"}, {"NO_COLOR", "1"}});
  ASSERT_TRUE(job->wait_for_text("smp/s  ETA ")) << job->bytes();
  const std::string live = job->screen().back();
  EXPECT_THAT(live, StartsWith("[small] "));
  EXPECT_THAT(live, HasSubstr("/100000  loss "));
  EXPECT_THAT(live, HasSubstr("stall "));
  EXPECT_LT(live.size(), static_cast<std::size_t>(PtyProgram::kColumns));

  const auto watch = on_terminal({"status", "--watch"}, {{"TERM", "xterm"}});
  ASSERT_TRUE(watch->wait_for_text("decoder/1")) << watch->bytes();
  const std::size_t first = watch->bytes().size();
  ASSERT_TRUE(watch->wait_for_text("\x1b[H\x1b[2J" + watch->screen().front().substr(0, 5))) << watch->bytes();

  job->type("\x03");
  EXPECT_EQ(job->wait(), 130) << job->bytes();
  EXPECT_THAT(job->screen(), Contains(HasSubstr("RUN STOPPED small")));
  EXPECT_THAT(job->screen(), Contains(HasSubstr("SIGINT: finishing the current step")));
  EXPECT_THAT(job->screen(), Not(Contains(HasSubstr("ETA "))))
      << "the live line is gone, progress lines were not shown";
  EXPECT_THAT(job->bytes(), Not(HasSubstr("\x1b"))) << "neither colours nor other escape sequences";
  EXPECT_EQ(watch->wait(), 0) << watch->bytes();
  EXPECT_GT(watch->bytes().size(), first);
  EXPECT_THAT(watch->screen(), Contains(HasSubstr("RUN STOPPED small"))) << "the job's end is shown";
  const std::string kept = text_of(dir_ / "runs/latest/logs/console.log");
  EXPECT_THAT(kept, HasSubstr("[small] step "));
  EXPECT_THAT(kept, HasSubstr("SIGINT: finishing the current step"));
}

TEST_F(TerminalTest, ADumbTerminalReadsAsAPipeDoes) {
  const Words words = {"run", small_job(), "training.steps=4", "metrics.every=1"};
  const auto job = on_terminal(words, {{"TERM", "dumb"}});
  EXPECT_EQ(job->wait(), 0) << job->bytes();
  EXPECT_THAT(job->bytes(), Not(HasSubstr("\x1b")));
  EXPECT_THAT(job->screen(), Contains(HasSubstr("step 4/4 100.0%")));
  EXPECT_THAT(job->screen(), Contains(HasSubstr("RUN COMPLETE small")));
}

TEST_F(TerminalTest, ColoursAreForTerminalsThatWantThem) {
  const auto job = on_terminal({"run", small_job(), "training.steps=2"}, {{"TERM", "xterm"}});
  EXPECT_EQ(job->wait(), 0) << job->bytes();
  EXPECT_THAT(job->bytes(), HasSubstr("\x1b[1;32mRUN COMPLETE"));
}

TEST_F(TerminalTest, AnOutputThatNobodyReadsDoesNotHoldUpTheJob) {
  Words words = long_job();
  words[2] = "training.steps=600";
  words.push_back("metrics.every=1");
  int unread[2];
  ASSERT_EQ(::pipe(unread), 0);
  // The pipe holds 64 KiB; 600 steps say twice as much.
  ProgramOptions how = options();
  how.program = "/bin/sh";
  how.deadline = std::chrono::seconds(120);
  const std::string command =
      std::string("exec \"$0\" \"$@\" >/proc/") + std::to_string(::getpid()) + "/fd/" + std::to_string(unread[1]);
  Words shell = {"-c", command, std::getenv("TROUPE_BINARY")};
  const auto end = run_program(shell + words, how);
  EXPECT_EQ(end.exit_code, 0) << end.text();
  ::close(unread[0]);
  ::close(unread[1]);
  EXPECT_THAT(text_of(dir_ / "runs/latest/logs/console.log"), HasSubstr("step 600/600"));
}

TEST_F(TerminalTest, RunsAreListedAndPruned) {
  ASSERT_TRUE(succeeded(run_small({"training.steps=2"})));
  ASSERT_TRUE(succeeded(run_small({"training.steps=2"})));
  ASSERT_TRUE(succeeded(run_small({"training.steps=4", "job.name=other"})));
  Program live(long_job(), options());
  ASSERT_TRUE(live.wait_for_text("5/100000")) << live.so_far().text();
  const auto listed = troupe({"runs"});
  expect_end(listed, 0, {"run ", "small/", "DONE", "other/", "RUNNING", "  latest", "loss "});
  EXPECT_EQ(std::count(listed.out.begin(), listed.out.end(), '\n'), 5);
  expect_end(troupe({"runs", "small", "--prune"}), 0, {"2 runs, ", "--yes"});
  EXPECT_EQ(num_runs(), 3u) << "nothing is removed unasked";
  expect_end(troupe({"runs", "--prune", "--keep", "0", "--yes"}), 0, {"removed "});
  EXPECT_EQ(num_runs(), 1u) << "a live run stays";
  EXPECT_EQ(num_runs("other"), 0u);
  expect_end(troupe({"verify"}), 0, {": running (pid " + std::to_string(live.pid()) + ")"});
  live.send_signal(SIGKILL);
  live.wait();
  expect_end(troupe({"runs"}), 0, {"KILLED"});
  expect_end(troupe({"status"}), 1, {}, {"--resume auto"});
  expect_end(troupe({"runs", "--run-root", "absent"}), 2, {}, {"absent"});
  expect_end(troupe({"runs", "--yes"}), 2);
}

TEST_F(TerminalTest, StatusOfAFinishedRunIsItsReport) {
  ASSERT_TRUE(succeeded(run_small({"training.steps=2"})));
  expect_end(troupe({"status"}), 1, {"RUN COMPLETE small"});
}

}  // namespace
}  // namespace troupe::app
