// What a person sees: a run on a terminal, watched from another one, and listed afterwards.
#include <regex>

#include "base/file_lock.h"
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
  std::unique_ptr<PtyProgram> on_terminal(const Words& words, Environment env, int columns = PtyProgram::kColumns,
                                          int rows = PtyProgram::kRows) const {
    env["XDG_RUNTIME_DIR"] = dir_ / "runtime";
    return std::make_unique<PtyProgram>(words, dir_.path(), env, std::chrono::seconds(60), columns, rows);
  }
  /// The lines from the closing report on.
  static Words report_on(const PtyProgram& terminal) {
    Words lines = terminal.screen();
    lines.erase(lines.begin(), std::find_if(lines.begin(), lines.end(),
                                            [](const std::string& line) { return line.starts_with("RUN STOPPED"); }));
    return lines;
  }
  static Words long_job() {
    return {"run", small_job(), "training.steps=100000", "lr_scheduler.total_steps=100000",
            "checkpoint.interval=100000"};
  }
};

TEST_F(TerminalTest, ALiveLineStaysBelowAndCtrlCEndsTheRunWithACheckpoint) {
  const auto job = on_terminal(long_job(), {{"TERM", "xterm"}, {"NO_COLOR", "1"}}, 80);
  ASSERT_TRUE(job->wait_for_text("smp/s  ETA ")) << job->bytes();
  const std::string live = job->screen().back();
  EXPECT_THAT(live, StartsWith("[small] "));
  EXPECT_THAT(live, HasSubstr("/100000  loss "));
  EXPECT_THAT(live, HasSubstr("stall "));

  const auto watch = on_terminal({"status", "--watch"}, {{"TERM", "xterm"}});
  ASSERT_TRUE(watch->wait_for_text("decoder/1")) << watch->bytes();
  const auto plain = on_terminal({"status", "--watch"}, {{"TERM", "xterm"}, {"NO_COLOR", "1"}});
  const auto dumb = on_terminal({"status", "--watch"}, {{"TERM", "dumb"}});
  const auto low = on_terminal({"status", "--watch"}, {{"TERM", "xterm"}}, PtyProgram::kColumns, 6);
  ASSERT_TRUE(plain->wait_for_text("decoder/1") && dumb->wait_for_text("decoder/1")) << "every mode shows the actors";
  ASSERT_TRUE(low->wait_for_text("more lines)")) << low->bytes();
  EXPECT_LT(low->screen().size(), 6u) << "a low window does not scroll";
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
  EXPECT_EQ(plain->wait() + dumb->wait(), 0);
  EXPECT_EQ(report_on(*plain), report_on(*watch)) << "only colours differ";
  EXPECT_THAT(plain->bytes(), Not(HasSubstr("\x1b[1;")));
  EXPECT_THAT(dumb->bytes(), Not(HasSubstr("\x1b")));
  EXPECT_THAT(dumb->screen(), Contains(HasSubstr("RUN STOPPED small")));
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

TEST_F(TerminalTest, ColoursAreForTerminalsThatWantThemAndNotForTheLog) {
  const auto job = on_terminal({"run", small_job(), "training.steps=2", "checkpoint.interval=2", "optimizer.lr=0",
                                "eval.open_loop.at_end=true", "eval.open_loop.windows=2"},
                               {{"TERM", "xterm"}});
  EXPECT_EQ(job->wait(), 0) << job->bytes();
  EXPECT_THAT(job->bytes(), HasSubstr("\x1b[1;32mRUN COMPLETE"));
  EXPECT_THAT(job->bytes(), HasSubstr("/2 windows")) << "the evaluation at the end shows how far it is";
  const std::string kept = text_of(dir_ / "runs/latest/logs/console.log");
  EXPECT_THAT(kept, Not(HasSubstr("\x1b")));
  EXPECT_THAT(kept, HasSubstr(text_of(dir_ / "runs/latest/report.txt"))) << "lines are not broken at a width";
  EXPECT_THAT(kept, HasSubstr("optimizer.lr")) << "warnings before the start are kept";
}

TEST_F(TerminalTest, AnErrorAfterTheRunsFolderWasMadeIsKept) {
  expect_end(run_small({"cluster.num_nodes=2", "cluster.start_timeout_s=1"}), 4, {}, {"error: "});
  EXPECT_THAT(text_of(dir_ / "runs/latest/logs/console.log"), HasSubstr("error: "));
}

TEST_F(TerminalTest, TheLiveLineOfReinforcementLearningFitsEightyColumns) {
  const auto job = on_terminal({"run", "rl_cartpole_ppo", "training.steps=100000"}, {{"TERM", "xterm"}}, 80);
  ASSERT_TRUE(job->wait_for_text("  return ")) << job->bytes();
  job->type("\x03");
  EXPECT_EQ(job->wait(), 130) << job->bytes();
  EXPECT_TRUE(std::regex_search(
      job->bytes(), std::regex("/100000  return [0-9.]+  [0-9.]+( steps)?/s  ETA [0-9hms.]+  stall [0-9.]+%")))
      << job->bytes();
  EXPECT_THAT(job->screen(), Not(Contains(HasSubstr("ETA ")))) << "nothing of the live line stays";
}

TEST_F(TerminalTest, ClosedOutputsDoNotEndInTheRunsFiles) {
  ProgramOptions how = options();
  how.program = "/bin/sh";
  const Words shell = {"-c", R"(exec "$0" "$@" >&- 2>&-)", std::getenv("TROUPE_BINARY")};
  EXPECT_EQ(run_program(shell + Words{"run", small_job(), "training.steps=2"}, how).exit_code, 0);
  EXPECT_TRUE(std::regex_match(text_of(dir_ / "runs/latest/lock"), std::regex("[0-9]+\n")));
}

TEST_F(TerminalTest, CommandsThatTakeLongShowHowFarTheyAre) {
  ASSERT_TRUE(succeeded(run_small({"training.steps=2", "checkpoint.interval=2"})));
  ASSERT_TRUE(succeeded(troupe({"export", "runs/latest", "--format", "safetensors", "--out", "weights"})));
  const std::vector<std::pair<std::string, Words>> commands = {
      {"[stats] ", {"stats", "data"}},
      {"[init] ", {"init", "data", "--out", "first"}},
      {"[convert] ", {"convert", "dataset", "data", "--to", "v3.0", "--out", "v30"}},
      {"[convert] ", {"convert", "weights", "weights", "--out", "converted"}},
      {"[eval] ", {"eval", "runs/latest", "--open-loop", "--windows", "2"}},
      {"[export] ", {"export", "runs/latest", "--format", "gear", "--out", "gear"}}};
  for (const auto& [shown, words] : commands) {
    const auto command = on_terminal(words, {{"TERM", "xterm"}});
    EXPECT_EQ(command->wait(), 0) << command->bytes();
    EXPECT_THAT(command->bytes(), HasSubstr("\r" + shown));
    EXPECT_THAT(command->screen(), Not(Contains(StartsWith(shown)))) << "the line goes away";
  }
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
  expect_end(troupe({"runs", "small", "--prune", "--keep", "2"}), 0,
             {"1 run, ", "`troupe runs small --prune --keep 2 --yes` removes it"});
  expect_end(troupe({"runs", "small", "--prune"}), 0, {"2 runs, ", "`troupe runs small --prune --yes` removes them"});
  expect_end(troupe({"runs", "--prune", "--keep", "9"}), 0, {"nothing to remove"});
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

TEST_F(TerminalTest, RunsBesideALiveOlderOneAreRemoved) {
  for (const char* id : {"a", "b", "c"}) write(std::string("runs/small/") + id + "/config.resolved.yaml", "");
  const auto live = FileLock::acquire(dir_ / "runs/small/a/lock");
  ASSERT_TRUE(live);
  expect_end(troupe({"runs", "--prune", "--yes"}), 0, {"removed "});
  EXPECT_TRUE(std::filesystem::exists(dir_ / "runs/small/a"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "runs/small/b"));
  EXPECT_TRUE(std::filesystem::exists(dir_ / "runs/small/c")) << "the newest stays";
}

TEST_F(TerminalTest, StatusOfAFinishedRunIsItsReport) {
  ASSERT_TRUE(succeeded(run_small({"training.steps=2"})));
  expect_end(troupe({"status"}), 1, {"RUN COMPLETE small"});
  const auto status = troupe({"status", "--json"});
  EXPECT_EQ(status.exit_code, 1);
  const auto json = nlohmann::json::parse(status.out);
  EXPECT_EQ(json.at("job"), "small");
  EXPECT_EQ(json.at("state"), "DONE");
  EXPECT_EQ(json.at("step"), 2);
  EXPECT_TRUE(json.at("newest").contains("loss"));
}

}  // namespace
}  // namespace troupe::app
