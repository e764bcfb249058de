// The recipe that README begins with, as shipped: what its first lines say.
#include "tests/app/run_fixture.h"

namespace troupe::app {
namespace {

using nlohmann::json;

TEST(QuickstartSftTest, BeatsHoldingStillAndTheMeanActionOnHeldOutEpisodes) {
  const ScratchFolder dir;
  const ProgramEnd end =
      run_program({"run", "quickstart:sft"}, {.cwd = dir.path(), .env = {}, .deadline = std::chrono::seconds(400)});
  expect_end(end, 0, {"RUN COMPLETE quickstart-sft", "of the better of both, so it has learnt"});
  const std::filesystem::path run = std::filesystem::canonical(dir / "runs/latest");
  std::string folder;
  for (const auto& entry : std::filesystem::directory_iterator(run / "eval"))
    folder = std::max(folder, entry.path().string());
  const json result = json::parse(text_of(folder + "/eval.json"));
  EXPECT_GE(result.at("episodes").size(), 4U);
  EXPECT_EQ(result.at("options").at("steps"), 16) << "the default";
  const json overall = result.at("overall"), baselines = overall.at("baselines");
  const auto mse_of = [](const json& error) { return error.at("mse").get<double>(); };
  EXPECT_LE(mse_of(overall), 0.7 * std::min(mse_of(baselines.at("hold_first")), mse_of(baselines.at("mean_action"))));
  EXPECT_TRUE(std::filesystem::exists(folder + "/prediction.png"));
}

}  // namespace
}  // namespace troupe::app
