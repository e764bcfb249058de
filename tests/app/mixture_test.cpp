// One job on two datasets of different robots: what it trains, resumes, refuses and leaves for a policy.
#include "tests/app/run_fixture.h"

namespace troupe::app {
namespace {

class MixtureRunTest : public RunTest {
 protected:
  void SetUp() override {
    RunTest::SetUp();
    const auto made = write_toy_dataset(dir_ / "other",
                                        {.episodes = 3, .frames = 40, .fps = 20, .height = 48, .width = 64, .seed = 2});
    ASSERT_TRUE(made) << made.error().message();
  }
  ProgramEnd run_mixture(std::vector<std::string> words, std::map<std::string, std::string> env = {}) const {
    words.insert(words.begin(),
                 {"run", std::string(TROUPE_SOURCE_DIR) + "/tests/app/jobs/mixture.yaml", "data.index.path=index"});
    return troupe(words, std::move(env));
  }
  nlohmann::json latest(const std::string& file) const {
    return nlohmann::json::parse(text_of(dir_ / ("runs/latest/checkpoints/latest/" + file)));
  }
};

TEST_F(MixtureRunTest, ItTrainsEverySampleOnceAndKeepsTheDatasState) {
  const ProgramEnd end = run_mixture({});
  ASSERT_TRUE(succeeded(end));
  expect_verified(80);
  EXPECT_EQ(curve("train/loss").size(), 20u);
  EXPECT_FALSE(curve("eval/loss").empty()) << end.text();
  const auto ledger = latest("ledger.json");
  EXPECT_EQ(ledger["next_position"], 80);
  ASSERT_EQ(ledger["datasets"].size(), 2u);
  EXPECT_NEAR(ledger["datasets"][0]["share"].get<double>(), 0.75, 1e-9);
  EXPECT_NEAR(ledger["datasets"][0]["drawn"].get<double>(), 60, 2);
  EXPECT_EQ(ledger["datasets"][0]["drawn"].get<int>() + ledger["datasets"][1]["drawn"].get<int>(), 80);
  const auto metadata = latest("metadata.json");
  EXPECT_EQ(metadata.size(), 2u);
  EXPECT_TRUE(metadata.contains("second"));
}

TEST_F(MixtureRunTest, TwoHalvesEqualTheWholeWhateverTheDecoders) {
  const auto whole = run_mixture({"job.run_root=whole"});
  ASSERT_TRUE(succeeded(whole));
  ASSERT_TRUE(succeeded(run_mixture({"training.steps=10", "cluster.component_placement.decoder=0"})));
  expect_end(run_mixture({"--resume", "auto", "cluster.component_placement.decoder=0:0-2"}), 0,
             {"resuming at step 10"});
  EXPECT_EQ(curve("train/loss"), curve("train/loss", "whole"));
  EXPECT_TRUE(exported() == exported("whole"));
}

TEST_F(MixtureRunTest, ABlockOrderTrainsEverySampleOnceToo) {
  ASSERT_TRUE(succeeded(run_mixture({"data.locality_block=4", "data.shuffle_buffer=8"})));
  expect_verified(80);
}

TEST_F(MixtureRunTest, AChangedMixtureIsRefusedByName) {
  ASSERT_TRUE(succeeded(run_mixture({"training.steps=4"})));
  expect_end(run_mixture({"training.steps=8", "data.sets[1].weight=2", "--resume", "auto"}), 2, {},
             {"data.sets[1].weight"});
  expect_end(
      run_mixture({"training.steps=8", "data.mixture.temperature=2", "data.locality_block=2", "--resume", "auto"}), 2,
      {}, {"data.mixture.temperature", "data.locality_block"});

  std::filesystem::remove_all(dir_ / "other");
  ASSERT_TRUE(write_toy_dataset(dir_ / "other",
                                {.episodes = 3, .frames = 40, .fps = 20, .height = 48, .width = 64, .seed = 3}));
  expect_end(run_mixture({"training.steps=8", "--resume", "auto"}), 2, {}, {"data.sets[1] (", "/other) had "});
  EXPECT_EQ(num_runs("mixture"), 1u);
}

TEST_F(MixtureRunTest, EvaluationTakesEitherRobot) {
  ASSERT_TRUE(succeeded(run_mixture({"training.steps=2"})));
  expect_end(troupe({"eval", "runs/latest", "--open-loop", "--windows", "1"}), 0);
  expect_end(
      troupe({"eval", "runs/latest", "--open-loop", "--windows", "1", "--data", "other", "--embodiment", "second"}), 0);
}

TEST_F(MixtureRunTest, DatasetsThatCannotShareABatchAreRefusedByName) {
  expect_end(run_mixture({"data.embodiments.second.layout=grid2x2"}), 2, {}, {"data.sets[1]"});
}

}  // namespace
}  // namespace troupe::app
