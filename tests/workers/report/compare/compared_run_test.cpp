#include "workers/report/compare/compared_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "configs/loader.h"
#include "tests/support/scratch_folder.h"

namespace troupe::workers {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::Pair;

TEST(ComparedRunTest, AnOpenLoopEvaluationHasTheErrorOfEveryEpisode) {
  const ScratchFolder dir;
  const RunDirectory run(dir.path());
  std::filesystem::create_directories(run.path("eval/step_000002"));
  std::ofstream(run.config()) << configs::load_job("presets/dreamzero_tiny.yaml", {}).config->resolved_yaml;
  std::ofstream(run.path("metrics.jsonl")) << R"({"step":1,"wall":1.0,"m":{"train/loss":2.0}})"
                                           << "\n";
  std::ofstream(run.path("eval/step_000002/eval.json")) << R"({"kind": "open_loop", "dataset": "d", "embodiment": "e",
    "horizon": 2, "overall": {"mse": 3}, "windows": [
    {"episode": 1, "row": 0, "recorded": [[0, 0], [0, 0]], "predicted": [[1, 1], [1, 1]]},
    {"episode": 1, "row": 9, "recorded": [[0, 0], [0, 0]], "predicted": [[2, 2], [2, 2]]},
    {"episode": 4, "row": 3, "recorded": [[1, 0], [0, 0]], "predicted": [[1, 0], [0, 4]]},
    {"episode": 5, "row": 3, "recorded": [[1, 0], [0, 0]], "predicted": [[1, null], [0, 4]]}]})";
  const ComparedRun read = read_compared_run(run).value();
  ASSERT_TRUE(read.held_against);
  EXPECT_THAT(read.held_against->mse, ElementsAre(Pair(1, DoubleEq(2.5)), Pair(4, DoubleEq(4))));
  EXPECT_EQ(read.held_against->windows, R"(["d","e",2,[1,0],[1,9],[4,3],[5,3]])");
}

TEST(ComparedRunTest, WhoStepsEnvironmentsIsASettingWhereTheJobSaidIt) {
  const auto isolation_of = [](const std::vector<std::string>& overrides, bool is_chosen) {
    const ScratchFolder dir;
    const RunDirectory run(dir.path());
    auto config = configs::load_job("quickstart:rl", overrides).config.value();
    if (is_chosen) {
      config.job.cluster.isolation["env"] = "inline";
      config.provenance["cluster.isolation.env"] = "default";
      config.record();
    }
    std::ofstream(run.config()) << config.resolved_yaml;
    std::ofstream(run.path("metrics.jsonl")) << R"({"step":1,"wall":1.0,"m":{"train/loss":2.0}})"
                                             << "\n";
    const auto settings = read_compared_run(run).value().settings;
    const auto found = settings.find("cluster.isolation.env");
    return found == settings.end() ? std::string() : found->second;
  };
  EXPECT_EQ(isolation_of({"cluster.isolation.env=process"}, false), "process");
  EXPECT_EQ(isolation_of({}, true), "");
}

}  // namespace
}  // namespace troupe::workers
