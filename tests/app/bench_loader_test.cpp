// `troupe bench loader`: what it measures, prints and refuses.
#include <iterator>
#include <sstream>

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

TEST_F(BenchLoaderTest, ANameThatIsInNoCacheIsAnsweredWithTheLineThatDownloadsIt) {
  expect_end(bench({"me/pick"}), 2, {}, {"hf download me/pick --repo-type dataset"});
  expect_end(troupe({"doctor", "--model", "me/mod"}), 2, {}, {"hf download me/mod\n"});
  const auto absent = bench({"absent.yaml"});
  EXPECT_EQ(absent.err.find("hf download"), std::string::npos) << absent.err;
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

TEST_F(BenchLoaderTest, VideosThatAreTooLargeAreAdvisedToBeCodedAnewAndTheAdviceCanBeFollowed) {
  ASSERT_TRUE(succeeded(troupe({"convert", "dataset", "data", "--out", "large", "--to", "v2.1", "--codec", "av1",
                                "--gop", "2", "--scale", "160x160"})));
  const auto measure = [&](const std::string& data) {
    const auto end =
        bench({data, "--samples", "12", "--decoders", "1", "--json", "data.image.height=32", "data.image.width=32"});
    EXPECT_TRUE(succeeded(end));
    return nlohmann::json::parse(end.out);
  };
  const auto before = measure("large");
  const auto& tried = before.at("reencodings");
  ASSERT_TRUE(tried.is_object()) << before.dump(1);
  EXPECT_EQ(tried.at("now").at("codec"), "av1");
  EXPECT_EQ(tried.at("now").at("width"), 160);
  EXPECT_EQ(tried.at("now").at("key_distance"), 2);
  EXPECT_GT(tried.at("now").at("decoded_per_delivered").get<double>(), 1);
  EXPECT_EQ(tried.at("needed").at("width"), 34) << "32 pixels of a crop of 95%";
  ASSERT_GE(tried.at("best").get<int>(), 0) << tried.dump(1);
  const auto& best = tried.at("trials").at(tried.at("best").get<std::size_t>());
  EXPECT_EQ(best.at("width"), 34);
  const std::string command = best.at("command");
  EXPECT_THAT(command, HasSubstr("--codec h264"));
  EXPECT_THAT(command, HasSubstr("--scale 34x34"));
  EXPECT_THAT(before.at("bottleneck").at("advice").get<std::string>(), HasSubstr(command));

  std::istringstream words(command);
  std::vector<std::string> arguments{std::istream_iterator<std::string>(words), {}};
  ASSERT_EQ(arguments.at(0), "troupe");
  arguments.erase(arguments.begin());
  ASSERT_TRUE(succeeded(troupe(arguments)));
  const std::string out = *(std::find(arguments.begin(), arguments.end(), "--out") + 1);
  const auto after = measure(out);
  EXPECT_GE(after.at("samples").get<int>(), 12);
  EXPECT_EQ(after.at("bad_samples"), 0);
  const auto info = nlohmann::json::parse(text_of(out + "/meta/info.json"));
  const auto& video = info.at("features").at("observation.images.front").at("info");
  EXPECT_EQ(video.at("video.codec"), "h264");
  EXPECT_EQ(video.at("video.width"), 34);
  EXPECT_EQ(video.at("video.height"), 34);
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
