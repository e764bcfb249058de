// `troupe stats` as a user runs it: what it prints and writes, and its exit codes.
#include "tests/app/run_fixture.h"

namespace troupe::app {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class StatsTest : public RunTest {
 protected:
  ProgramEnd stats(std::vector<std::string> words) const {
    words.insert(words.begin(), {"stats", "data"});
    return troupe(words, {{"XDG_CACHE_HOME", dir_ / "cache"}});
  }
  nlohmann::json json_of(const std::string& name) const { return nlohmann::json::parse(text_of(dir_ / name)); }
};

TEST_F(StatsTest, ASoundDatasetIsATableAndExitZero) {
  const auto end = stats({});
  EXPECT_EQ(end.exit_code, 0) << end.text();
  for (const char* part :
       {"episodes   5", "observation.images.front", "(median 12)", "observation.state[3]", "q99", "OK: 0 problems"})
    EXPECT_THAT(end.out, HasSubstr(part));
}

TEST_F(StatsTest, ReportsGoWhereTheyAreAsked) {
  expect_end(stats({"--html", "r.html", "--json", "r.json", "--verify", "full", "--workers", "2"}), 0,
             {"frames/s, 0 files with errors"});
  EXPECT_THAT(text_of(dir_ / "r.html"), HasSubstr("data:image/png;base64,"));
  const auto json = json_of("r.json");
  EXPECT_EQ(json["verify"], "full");
  EXPECT_EQ(json["decoded"]["pictures"].get<std::int64_t>(), 2 * json["dataset"]["frames"].get<std::int64_t>());
  const auto printed = stats({"--json", "-"});
  EXPECT_EQ(nlohmann::json::parse(printed.out)["dataset"]["frames"], json["dataset"]["frames"]);
  EXPECT_THAT(printed.err, HasSubstr("episodes   5"));
  expect_end(stats({"--html", "absent/r.html"}), 2, {}, {"there is no folder absent"});
}

TEST_F(StatsTest, MetadataIsWrittenOnceAndNeverOverAnothersFile) {
  expect_end(stats({"--write-metadata"}), 0, {"wrote      "});
  EXPECT_EQ(json_of("data/meta/stats.json")["observation.state"]["q01"].size(), 4u);
  EXPECT_TRUE(json_of("data/meta/metadata.json").front().contains("statistics"));
  EXPECT_THAT(stats({"--write-metadata"}).out, HasSubstr("unchanged  "));
  write("data/meta/stats.json", "{}");
  expect_end(stats({"--write-metadata"}), 0, {"stats.json, which differs and was not written by troupe"});
  EXPECT_EQ(text_of(dir_ / "data/meta/stats.json"), "{}");
  expect_end(stats({"--write-metadata", "--out", "mine"}), 0);
  EXPECT_TRUE(fs::exists(dir_ / "mine/stats.json"));
}

TEST_F(StatsTest, BadFilesAreNamedAndExitSix) {
  fs::resize_file(dir_ / "data/videos/chunk-000/observation.images.front/episode_000002.mp4", 100);
  expect_end(stats({"--json", "r.json"}), 6, {"PROBLEMS FOUND", "episode_000002.mp4", "remedy "});
  EXPECT_EQ(json_of("r.json")["defects"]["D06"], 1);
  EXPECT_EQ(json_of("r.json")["episodes"]["usable"], 4);
}

TEST_F(StatsTest, TablesAreDescribedWithoutTheirVideos) {
  fs::remove_all(dir_ / "data/videos");
  expect_end(stats({"--write-metadata", "--out", "mine", "--json", "r.json"}), 6,
             {"PROBLEMS FOUND", "does not exist", "observation.state[3]", "wrote      mine/stats.json"});
  EXPECT_EQ(json_of("mine/stats.json")["action"]["q99"].size(), 4u);
  EXPECT_EQ(json_of("r.json")["episodes"]["usable"], 0);
  EXPECT_GT(json_of("r.json")["statistics"]["rows"], 100);
}

TEST_F(StatsTest, AGitLfsPointerIsExitSixWithTheCommand) {
  write("data/data/chunk-000/episode_000001.parquet",
        "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22e\nsize 12345\n");
  expect_end(stats({}), 6, {"episode_000001.parquet is a Git LFS pointer", "lfs pull --include"});
}

TEST_F(StatsTest, TheDatasetIsLeftAsItWas) {
  const auto before = files_below(dir_ / "data");
  ASSERT_TRUE(succeeded(run_small({"training.steps=1"}, {{"XDG_CACHE_HOME", dir_ / "cache"}})));
  ASSERT_TRUE(succeeded(stats({})));
  EXPECT_TRUE(files_below(dir_ / "data") == before);
  EXPECT_TRUE(fs::exists(dir_ / "cache/troupe/index"));
  EXPECT_THAT(text_of(dir_ / "runs/latest/config.resolved.yaml"), HasSubstr("path: " + (dir_ / "data")));
}

TEST_F(StatsTest, MetadataThatCannotBeReadIsAProblemToo) {
  write("data/meta/info.json", "{");
  expect_end(stats({}), 6, {"D01", "info.json"});
}

TEST_F(StatsTest, MistakesOfTheUserAreExitTwo) {
  expect_end(troupe({"stats", "nowhere"}), 2, {}, {"nowhere"});
  EXPECT_EQ(stats({"--embodiment", "no_robot"}).exit_code, 2);
  EXPECT_EQ(stats({"--relative-keys", "tail"}).exit_code, 2);
  expect_end(stats({"--out", "x"}), 2, {}, {"--write-metadata"});
}

TEST_F(StatsTest, WorkersDoNotChangeTheReport) {
  ASSERT_TRUE(succeeded(stats({"--json", "one.json", "--workers", "1"})));
  ASSERT_TRUE(succeeded(stats({"--json", "four.json", "--workers", "4"})));
  EXPECT_EQ(text_of(dir_ / "one.json"), text_of(dir_ / "four.json"));
}

}  // namespace
}  // namespace troupe::app
