// A job that ends with its own open-loop evaluation.
#include <fmt/format.h>

#include <csignal>

#include "tests/app/run_fixture.h"

namespace troupe::app {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class OpenLoopAtEndTest : public RunTest {
 protected:
  /// `troupe run small.yaml` with three steps and the evaluation of `windows` windows.
  static std::vector<std::string> words(int windows) {
    return {"run",
            small_job(),
            "training.steps=3",
            "checkpoint.interval=3",
            "eval.open_loop.at_end=true",
            "eval.open_loop.windows=" + std::to_string(windows)};
  }
  std::string report() const { return text_of(dir_ / "runs/latest/report.txt"); }
};

TEST_F(OpenLoopAtEndTest, TheReportSaysWhatEvalWouldSayAndLeavesTheSameFiles) {
  expect_end(troupe(words(2)), 0, {"open-loop evaluation of checkpoints/step_000003", "\n  open loop mse "});
  const std::string folder = dir_ / "runs/latest/eval/step_000003", result = text_of(folder + "/eval.json");
  const nlohmann::json overall = nlohmann::json::parse(result).at("overall");
  EXPECT_EQ(nlohmann::json::parse(result).at("episodes"), std::vector<int>{0}) << "the held-out one";
  EXPECT_THAT(report(), HasSubstr(fmt::format("mse {:.4g} on 2 held-out windows of 1 episodes   holding still {:.4g}",
                                              overall.at("mse").get<double>(),
                                              overall.at("baselines").at("hold_first").at("mse").get<double>())));
  EXPECT_TRUE(std::filesystem::exists(folder + "/open_loop.png"));

  std::filesystem::remove(folder + "/eval.json");
  expect_end(troupe({"eval", "runs/latest", "--open-loop", "--windows", "2"}), 0);
  EXPECT_EQ(text_of(folder + "/eval.json"), result);
}

TEST_F(OpenLoopAtEndTest, WithoutTheKeyNothingIsEvaluated) {
  expect_end(run_small({"training.steps=3", "checkpoint.interval=3"}), 0);
  EXPECT_THAT(report(), Not(HasSubstr("open loop")));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "runs/latest/eval/step_000003/eval.json"));
}

TEST_F(OpenLoopAtEndTest, AnEvaluationThatFailsIsAWarningAndTheRunComplete) {
  // the dataset cannot be read any more when the last step is done
  Program job(words(2) + std::vector<std::string>{"metrics.every=1"}, options());
  ASSERT_TRUE(job.wait_for_text("step 3/3")) << job.wait().text();
  std::filesystem::rename(dir_ / "data", dir_ / "moved");
  expect_end(job.wait(), 0, {"warning: ", "RUN COMPLETE"});
  EXPECT_THAT(report(), Not(HasSubstr("open loop")));
}

TEST_F(OpenLoopAtEndTest, CtrlCDuringTheEvaluationEndsTheProgramAndTheRunIsWhole) {
  Program job(words(10'000), options());
  ASSERT_TRUE(job.wait_for_text("open-loop evaluation of")) << job.wait().text();
  job.send_signal(SIGINT);
  expect_end(job.wait(), 130, {}, {"the job has ended; its closing report is cut short"});
  expect_verified(12);
  auto again = words(10'000);
  again.insert(again.end(), {"--resume", "auto"});
  expect_end(troupe(again), 0, {"RUN COMPLETE small", "checkpoints/step_000003"});
  // killed before anything of a report was written
  std::filesystem::remove(dir_ / "runs/latest/report.txt");
  expect_end(troupe(again), 0, {"is complete", "ended before its closing report was written"});
}

}  // namespace
}  // namespace troupe::app
