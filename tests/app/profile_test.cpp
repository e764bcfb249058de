// `troupe run --profile`: what the trace of a job holds.
#include <set>

#include "tests/app/run_fixture.h"

namespace troupe::app {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

/// Names of the spans of a trace by the actor that recorded them, such as learner/0: a process, or a thread of the
/// controller's.
class Trace {
 public:
  explicit Trace(const std::string& path) : json_(nlohmann::json::parse(text_of(path))) {
    std::map<int, std::string> processes;
    std::map<std::pair<int, int>, std::string> threads;
    for (const nlohmann::json& event : json_.at("traceEvents")) {
      const int pid = event.at("pid");
      if (event.at("name") == "process_name") {
        const std::string name = event.at("args").at("name");
        processes[pid] = name.substr(0, name.find('#'));
      } else if (event.at("name") == "thread_name") {
        threads[{pid, event.at("tid")}] = event.at("args").at("name");
      } else if (event.at("ph") == "X") {
        const std::string& process = processes.at(pid);
        const std::string& actor = process == "controller" ? threads.at({pid, event.at("tid")}) : process;
        const std::string name = event.at("name");
        names_[actor].insert(name);
        ++counts_[actor + " " + name];
      }
    }
  }
  const std::set<std::string>& names(const std::string& actor) const { return names_.at(actor); }
  int count(const std::string& actor, const std::string& name) const { return counts_.at(actor + " " + name); }

 private:
  const nlohmann::json json_;
  std::map<std::string, std::set<std::string>> names_;
  std::map<std::string, int> counts_;
};

class ProfileRunTest : public RunTest {};

TEST_F(ProfileRunTest, ATraceHasTheWorkOfEveryProcessOnOneClock) {
  // a snapshot waits until the one before is written: that of step 2 is before step 4 ends, however slow the writer is
  const ProgramEnd end =
      run_small({"training.steps=6", "checkpoint.interval=1", "cluster.isolation.learner=process",
                 "cluster.isolation.decoder=process", "cluster.isolation.checkpointer=process", "--profile", "2:4"});
  expect_end(end, 0, {"profile of steps 2 to 4: ", "the longest waits:", "RUN COMPLETE"});
  EXPECT_THAT(end.out, ::testing::ContainsRegex(" s +(learner|decoder|checkpointer)/[0-9]#[0-9] .* at [0-9.]+ s  "));
  const Trace trace(dir_ / "runs/latest/profile/trace.json");
  EXPECT_THAT(trace.names("learner/0"),
              IsSupersetOf({"step", "wait for items", "collate", "encode", "vote", "optimizer", "snapshot",
                            "forward head", "backward head", "gather head", "exchange head", "sum head"}));
  for (const char* rank : {"learner/0", "learner/1"}) {
    EXPECT_EQ(trace.count(rank, "step"), 3) << rank;
    EXPECT_EQ(trace.count(rank, "optimizer"), 3) << rank << ": one that is ahead switches nobody off";
  }
  EXPECT_THAT(trace.names("decoder/0"),
              IsSupersetOf({"make sample", "decode", "transform", "wait for a credit", "serve a feed", "send"}));
  EXPECT_THAT(trace.names("checkpointer/0"), Contains("write checkpoint"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "runs/latest/profile/switch")) << "the raw spans are deleted";
}

TEST_F(ProfileRunTest, StepsThatNobodyReachesAndOtherTextsAreRefused) {
  expect_end(run_small({"--profile", "13:10"}), 2, {}, {"--profile is '13:10'", "such as 10:13"});
  expect_end(run_small({"--profile", "0:2"}), 2, {}, {"counted from 1"});
  expect_end(run_small({"--profile", "100"}), 2, {}, {"--profile begins with step 100; the job has 20"});
}

TEST_F(ProfileRunTest, ARunThatGoesOnKeepsItsTraceUnlessItMakesAnother) {
  const std::string profile = dir_ / "runs/latest/profile";
  const auto run = [&](int steps, const std::string& traced) {
    return run_small({"training.steps=" + std::to_string(steps), "--resume", "auto", "--profile", traced});
  };
  expect_end(run(3, "2:400"), 0, {"profile of steps 2 to 3: "});
  const std::string trace = text_of(profile + "/trace.json");
  expect_end(run(3, "2:3"), 0, {"RUN COMPLETE"}, {"--profile has nothing to trace"});
  expect_end(run(6, "2:3"), 2, {}, {"--profile begins with step 2; the run goes on with step 4"});
  EXPECT_EQ(text_of(profile + "/trace.json"), trace);
  expect_end(run(6, "5:6"), 0, {"profile of steps 5 to 6: "});
  EXPECT_NE(text_of(profile + "/trace.json"), trace);
  std::size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator(profile)) files += file.is_regular_file();
  EXPECT_EQ(files, 1U) << "switch and raw spans are deleted";
}

TEST_F(ProfileRunTest, ReinforcementLearningShowsSimulatorsAndThePolicy) {
  const ProgramEnd end = troupe({"run", "quickstart:rl", "cluster.isolation.env=process", "training.steps=4",
                                 "checkpoint.interval=4", "eval.episodes=2", "--profile=2:3"});
  expect_end(end, 0, {"profile of steps 2 to 3: "});
  const Trace trace(dir_ / "runs/latest/profile/trace.json");
  EXPECT_THAT(trace.names("learner/0"),
              IsSupersetOf({"step", "collect", "update", "network", "optimizer", "publish weights"}));
  EXPECT_THAT(trace.names("rollout/0"), Contains("policy call")) << "a thread of the controller's process";
  EXPECT_THAT(trace.names("env/0"), IsSupersetOf({"env step"}));
}

}  // namespace
}  // namespace troupe::app
