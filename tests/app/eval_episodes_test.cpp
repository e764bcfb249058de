// `troupe eval` of policies that play: through the program, on what small runs left.
#include "tests/app/rl_fixture.h"

namespace troupe::app {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class EvalEpisodesTest : public RlRunTest {
 protected:
  ProgramEnd eval(const Words& words) const { return troupe(Words{"eval", dir_ / "runs/latest"} + words); }
  std::string text_of(const std::string& name) const { return testing::text_of(dir_ / name); }
  void train(const Words& overrides = {}) const {
    ASSERT_TRUE(succeeded(run("runs", Words{"training.steps=2", "checkpoint.interval=1"} + overrides)));
  }
};

TEST_F(EvalEpisodesTest, PlaysEverySeedOnceAndTheSameAgain) {
  train();
  expect_end(eval({"--episodes", "20", "--seed", "40"}), 0,
             {"evaluated 20 episodes of CartPole-v1, deterministic policy, limit 500 steps, K 1"},
             {"CartPole-v1 has no camera"});
  const std::string first = text_of("runs/latest/eval/step_000002/eval.json");
  const json report = json::parse(first);
  ASSERT_EQ(report["episodes"].size(), 20u);
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(report["episodes"][i]["seed"], 40 + i);
  EXPECT_EQ(report["checkpoint"]["step"], 2);
  EXPECT_THAT(text_of("runs/latest/eval/step_000002/results.md"), HasSubstr("seeds 40 to 59"));
  const std::string page = text_of("runs/latest/report.html");
  for (const char* part : {"<h3>eval/step_000002/eval.json</h3>", "RUN COMPLETE", "<h2>Plan</h2>", "<h2>Curves</h2>"})
    EXPECT_THAT(page, HasSubstr(part)) << "the run's page shows it";

  const ProgramEnd again = eval({"--episodes", "20", "--seed", "40", "--json"});
  ASSERT_TRUE(succeeded(again));
  EXPECT_EQ(again.out, first);
}

TEST_F(EvalEpisodesTest, TheRunsOwnEvaluationComesOutAgain) {
  train();
  ASSERT_TRUE(succeeded(eval({"--videos", "0"})));
  const json report = json::parse(text_of("runs/latest/eval/step_000002/eval.json"));
  EXPECT_EQ(report["episodes"].size(), 4u) << "eval.episodes of the job";
  EXPECT_EQ(report["results"]["eval/return"].get<double>(), curve("runs", "eval/return").at(2));
}

TEST_F(EvalEpisodesTest, TwoCheckpointsPlayTheSameSeeds) {
  train();
  expect_end(eval({"--episodes", "6", "--compare", dir_ / "runs/latest", "--out", dir_ / "out"}), 0,
             {"Wilcoxon's signed-rank test, exact: p = 1 (0 of 6 seeds differ)"});
  ASSERT_TRUE(succeeded(
      eval({"--episodes", "6", "--compare", dir_ / "runs/latest/checkpoints/step_000001", "--out", dir_ / "out"})));
  const json report = json::parse(text_of("out/eval.json"));
  EXPECT_EQ(report["compare"]["checkpoint"]["step"], 1);
  for (std::size_t i = 0; i < 6; ++i)
    EXPECT_EQ(report["episodes"][i]["seed"], report["compare"]["episodes"][i]["seed"]);
}

TEST_F(EvalEpisodesTest, TheRunAndTheCommandWriteVideosOfTheArmsFailures) {
  train({"env.id=arm7/reach-v1", "env.num_envs=8", "env.blocks=2", "eval.episodes=3", "eval.videos=2",
         "training.global_batch_size=64"});
  const std::string run_videos = "runs/latest/eval/step_000002/videos/", own_videos = "out/videos/";
  expect_end(eval({"--episodes", "3", "--videos", "1", "--out", dir_ / "out"}), 0, {"success   0/3"});
  const std::string video = text_of(own_videos + "seed_1000000.mp4");
  EXPECT_FALSE(video.empty());
  EXPECT_EQ(video, text_of(run_videos + "seed_1000000.mp4")) << "the same episode";
  EXPECT_TRUE(std::filesystem::exists(dir_ / (run_videos + "seed_1000001.mp4")));
  EXPECT_FALSE(std::filesystem::exists(dir_ / (own_videos + "seed_1000001.mp4")));
  EXPECT_THAT(text_of("out/results.md"), HasSubstr("[1000000](videos/seed_1000000.mp4)"));
}

TEST_F(EvalEpisodesTest, WrongInputIsAnErrorThatSaysWhatToDo) {
  train();
  const std::vector<std::pair<Words, std::string>> wrong = {
      {{"--episodes", "3,4"}, "takes one, how many episodes"},
      {{"--episodes", "0"}, "--episodes is 0"},
      {{"--open-loop"}, "--open-loop compares DreamZero with recordings"},
      {{"--env", "Pendulum-v1"}, "observations have 3 numbers, the policy was trained with 4"},
      {{"--env", "CartPol-v1"}, "did you mean 'CartPole-v1'"},
      {{"--data", dir_ / "data"}, "it goes with --open-loop"},
      {{"--compare", dir_ / "nowhere"}, "--compare"}};
  for (const auto& [words, said] : wrong) {
    expect_end(eval(words), 2, {}, {said});
  }
  EXPECT_FALSE(std::filesystem::exists(dir_ / "runs/latest/eval/step_000002/eval.json"));
}

}  // namespace
}  // namespace troupe::app
