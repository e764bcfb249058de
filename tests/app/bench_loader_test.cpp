// `troupe bench loader`: what it measures, prints and refuses.
#include "tests/app/run_fixture.h"

namespace troupe::app {
namespace {

using ::testing::HasSubstr;

class BenchLoaderTest : public RunTest {
 protected:
  ProgramEnd bench(std::vector<std::string> words) {
    words.insert(words.begin(), {"bench", "loader"});
    return troupe(words, {{"XDG_CACHE_HOME", dir_ / "cache"}});
  }
};

TEST_F(BenchLoaderTest, AJobIsMeasuredAndTheJsonIsOneObject) {
  const auto end = bench({small_job(), "data.sets[0].path=data", "--samples", "6", "--decoders", "2", "--json"});
  ASSERT_TRUE(succeeded(end));
  const auto json = nlohmann::json::parse(end.out);
  EXPECT_GE(json.at("samples").get<int>(), 6);
  EXPECT_EQ(json.at("decoders"), 2);
  EXPECT_EQ(json.at("bad_samples"), 0);
  EXPECT_GT(json.at("samples_per_second").get<double>(), 0);
  EXPECT_GT(json.at("stage_ms_per_sample").at("decode").get<double>(), 0);
  EXPECT_GT(json.at("cores_used").get<double>(), 0);
  EXPECT_FALSE(json.at("bottleneck").at("stage").get<std::string>().empty());
  EXPECT_EQ(num_runs(), 0u) << "a run directory was made";
}

TEST_F(BenchLoaderTest, AFolderGetsAJobThatFitsIt) {
  const auto end = bench({"data", "--samples", "4", "--decoders", "1", "data.image.height=32", "data.image.width=32"});
  ASSERT_TRUE(succeeded(end));
  for (const char* part : {"window of 25 rows", "layout horizontal", "samples/s", "ms per sample", "bottleneck"}) {
    EXPECT_THAT(end.out, HasSubstr(part));
  }
}

TEST_F(BenchLoaderTest, AConsumerAtAPaceIsWatchedForStalls) {
  const auto end = bench(
      {"data", "--samples", "8", "--consume-rate", "40", "--json", "data.image.height=32", "data.image.width=32"});
  ASSERT_TRUE(succeeded(end));
  const auto json = nlohmann::json::parse(end.out);
  EXPECT_EQ(json.at("consume_rate"), 40);
  EXPECT_LE(json.at("samples_per_second").get<double>(), 60);  // 8 samples in two batches: the last is not waited for
  EXPECT_GE(json.at("stall_percent").get<double>(), 0);
}

TEST_F(BenchLoaderTest, MistakesAreNamed) {
  expect_end(bench({"nowhere.yaml"}), 2, {}, {"nowhere.yaml"});
  std::filesystem::create_directories(dir_ / "empty");
  expect_end(bench({"empty"}), 2, {}, {"info.json"});
  EXPECT_EQ(bench({"data", "--samples", "0"}).exit_code, 2);
  EXPECT_EQ(bench({"data", "--decoders", "-1"}).exit_code, 2);
  expect_end(bench({"data", "data.image.hight=32"}), 2, {}, {"did you mean 'height'?"});
  EXPECT_EQ(troupe({"bench", "learner", "data"}).exit_code, 2);
}

TEST_F(BenchLoaderTest, ADamagedFileIsAFailureThatNamesIt) {
  std::filesystem::resize_file(dir_ / "data/videos/chunk-000/observation.images.front/episode_000002.mp4", 40);
  expect_end(bench({"data", "--samples", "4"}), 4, {}, {"episode_000002.mp4"});
}

}  // namespace
}  // namespace troupe::app
