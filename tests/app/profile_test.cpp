// `troupe run --profile`: what the trace of a job holds.
#include <set>

#include "tests/app/run_fixture.h"

namespace troupe::app {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

/// Names of the spans of a trace by the process that recorded them, such as learner/0.
class Trace {
 public:
  explicit Trace(const std::string& path) : json_(nlohmann::json::parse(text_of(path))) {
    std::map<int, std::string> processes;
    for (const nlohmann::json& event : json_.at("traceEvents")) {
      const int pid = event.at("pid");
      if (event.at("name") == "process_name") {
        const std::string name = event.at("args").at("name");
        processes[pid] = name.substr(0, name.find('#'));
      } else if (event.at("ph") == "X") {
        const std::string name = event.at("name");
        names_[processes.at(pid)].insert(name);
        if (name == "step") steps_[processes.at(pid)].push_back({event.at("ts"), event.at("dur")});
        last_ = std::max(last_, event.at("ts").get<double>());
      }
    }
  }
  const std::set<std::string>& names(const std::string& process) const { return names_.at(process); }
  std::size_t steps(const std::string& process) const { return steps_.at(process).size(); }

 private:
  const nlohmann::json json_;
  std::map<std::string, std::set<std::string>> names_;
  std::map<std::string, std::vector<std::pair<double, double>>> steps_;
  double last_ = 0;
};

class ProfileRunTest : public RunTest {};

TEST_F(ProfileRunTest, ATraceHasTheWorkOfEveryProcessOnOneClock) {
  const ProgramEnd end =
      run_small({"training.steps=6", "checkpoint.interval=3", "cluster.isolation.learner=process",
                 "cluster.isolation.decoder=process", "cluster.isolation.checkpointer=process", "--profile", "2:4"});
  expect_end(end, 0, {"profile of steps 2 to 4: ", "the longest waits:", "RUN COMPLETE"});
  EXPECT_THAT(end.out, ::testing::ContainsRegex(" s +(learner|decoder|checkpointer)/[0-9]#[0-9] .* at [0-9.]+ s  "));
  const Trace trace(dir_ / "runs/latest/profile/trace.json");
  EXPECT_THAT(trace.names("learner/0"), IsSupersetOf({"step", "wait for items", "collate", "encode", "vote",
                                                      "optimizer", "snapshot", "forward head", "backward head"}));
  EXPECT_EQ(trace.steps("learner/0"), 3U);
  EXPECT_THAT(trace.names("decoder/0"),
              IsSupersetOf({"make sample", "decode", "transform", "wait for a credit", "serve a feed"}));
  EXPECT_THAT(trace.names("checkpointer/0"), Contains("write checkpoint"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "runs/latest/profile/switch")) << "the raw spans are deleted";
}

TEST_F(ProfileRunTest, StepsThatNobodyReachesAndOtherTextsAreRefused) {
  expect_end(run_small({"--profile", "13:10"}), 2, {}, {"--profile is '13:10'", "such as 10:13"});
  expect_end(run_small({"--profile", "0:2"}), 2, {}, {"counted from 1"});
  expect_end(run_small({"--profile", "100"}), 2, {}, {"--profile begins with step 100; the job has 20"});
}

TEST_F(ProfileRunTest, ReinforcementLearningShowsSimulatorsAndThePolicy) {
  const ProgramEnd end = troupe({"run", "quickstart:rl", "training.steps=4", "checkpoint.interval=4", "eval.episodes=2",
                                 "cluster.isolation.rollout=process", "--profile=2:3"});
  expect_end(end, 0, {"profile of steps 2 to 3: "});
  const Trace trace(dir_ / "runs/latest/profile/trace.json");
  EXPECT_THAT(trace.names("learner/0"),
              IsSupersetOf({"step", "collect", "update", "forward and backward", "optimizer"}));
  EXPECT_THAT(trace.names("rollout/0"), Contains("policy call"));
  EXPECT_THAT(trace.names("env/0"), IsSupersetOf({"env step"}));
}

}  // namespace
}  // namespace troupe::app
