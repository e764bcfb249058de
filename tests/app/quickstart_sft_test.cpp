// The recipe that README begins with, as shipped: what its first lines say.
#include "tests/app/run_fixture.h"

namespace troupe::app {
namespace {

using nlohmann::json;

/// A copy of a dataset whose episodes are told another ball on the other side.
void copy_with_other_prompts(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
  std::vector<json> tasks;
  std::ifstream in(from / "meta/tasks.jsonl");
  for (std::string line; std::getline(in, line);) tasks.push_back(json::parse(line));
  std::ofstream out(to / "meta/tasks.jsonl");
  constexpr std::size_t kShift = 3;  // odd: two tasks of each colour, left and right
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    json told = tasks[i];
    told["task"] = tasks[(i + kShift) % tasks.size()].at("task");
    out << told.dump() << "\n";
  }
}

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

  // where the arm is says little: what it is told decides where it goes
  copy_with_other_prompts(dir / "runs/toy-arm", dir / "other");
  std::string episodes;
  for (const auto& episode : result.at("episodes")) episodes += (episodes.empty() ? "" : ",") + episode.dump();
  expect_end(run_program({"eval", "quickstart-sft", "--open-loop", "--data", "other", "--episodes", episodes, "--out",
                          "misled"},
                         {.cwd = dir.path(), .env = {}}),
             0);
  const json misled = json::parse(text_of(dir / "misled/eval.json"));
  EXPECT_GE(mse_of(misled.at("overall")), 2 * mse_of(overall));
}

}  // namespace
}  // namespace troupe::app
