// `troupe stats` as a user runs it: what it prints and writes, and its exit codes.
#include "tests/app/run_fixture.h"

namespace troupe::app {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

class StatsTest : public RunTest {
 protected:
  ProgramEnd stats(std::vector<std::string> words) const {
    words.insert(words.begin(), {"stats", "data"});
    return troupe(words, {{"XDG_CACHE_HOME", dir_ / "cache"}});
  }
  nlohmann::json json_of(const std::string& name) const { return nlohmann::json::parse(read(dir_ / name)); }
};

TEST_F(StatsTest, ASoundDatasetIsATableAndExitZero) {
  const auto end = stats({});
  EXPECT_EQ(end.exit_code, 0) << end.text();
  for (const char* part :
       {"episodes   5", "observation.images.front", "(median 12)", "observation.state[3]", "q99", "OK: 0 problems"})
    EXPECT_THAT(end.out, HasSubstr(part));
}

TEST_F(StatsTest, ReportsGoWhereTheyAreAsked) {
  const auto end = stats({"--html", "r.html", "--json", "r.json", "--verify", "full", "--workers", "2"});
  EXPECT_EQ(end.exit_code, 0) << end.text();
  EXPECT_THAT(end.out, HasSubstr("frames/s, 0 files with errors"));
  EXPECT_THAT(read(dir_ / "r.html"), HasSubstr("data:image/png;base64,"));
  const auto json = json_of("r.json");
  EXPECT_EQ(json["verify"], "full");
  EXPECT_EQ(json["decoded"]["pictures"].get<std::int64_t>(), 2 * json["dataset"]["frames"].get<std::int64_t>());
  const auto printed = stats({"--json", "-"});
  EXPECT_EQ(nlohmann::json::parse(printed.out)["dataset"]["frames"], json["dataset"]["frames"]);
  EXPECT_THAT(printed.err, HasSubstr("episodes   5"));
  const auto nowhere = stats({"--html", "absent/r.html"});
  EXPECT_EQ(nowhere.exit_code, 2) << nowhere.text();
  EXPECT_THAT(nowhere.err, HasSubstr("there is no folder absent"));
}

TEST_F(StatsTest, MetadataIsWrittenOnceAndNeverOverAnothersFile) {
  const auto end = stats({"--write-metadata"});
  EXPECT_EQ(end.exit_code, 0) << end.text();
  EXPECT_THAT(end.out, HasSubstr("wrote      "));
  EXPECT_EQ(json_of("data/meta/stats.json")["observation.state"]["q01"].size(), 4u);
  EXPECT_TRUE(json_of("data/meta/metadata.json").front().contains("statistics"));
  EXPECT_THAT(stats({"--write-metadata"}).out, HasSubstr("unchanged  "));
  write("data/meta/stats.json", "{}");
  const auto kept = stats({"--write-metadata"});
  EXPECT_EQ(kept.exit_code, 0) << kept.text();
  EXPECT_THAT(kept.out, HasSubstr("stats.json, which differs and was not written by troupe"));
  EXPECT_EQ(read(dir_ / "data/meta/stats.json"), "{}");
  const auto elsewhere = stats({"--write-metadata", "--out", "mine"});
  EXPECT_EQ(elsewhere.exit_code, 0) << elsewhere.text();
  EXPECT_TRUE(fs::exists(dir_ / "mine/stats.json"));
}

TEST_F(StatsTest, BadFilesAreNamedAndExitSix) {
  fs::resize_file(dir_ / "data/videos/chunk-000/observation.images.front/episode_000002.mp4", 100);
  const auto end = stats({"--json", "r.json"});
  EXPECT_EQ(end.exit_code, 6) << end.text();
  EXPECT_THAT(end.out, HasSubstr("PROBLEMS FOUND"));
  EXPECT_THAT(end.out, HasSubstr("episode_000002.mp4"));
  EXPECT_THAT(end.out, HasSubstr("remedy "));
  EXPECT_EQ(json_of("r.json")["defects"]["D06"], 1);
  EXPECT_EQ(json_of("r.json")["episodes"]["usable"], 4);
}

TEST_F(StatsTest, MetadataThatCannotBeReadIsAProblemToo) {
  write("data/meta/info.json", "{");
  const auto end = stats({});
  EXPECT_EQ(end.exit_code, 6) << end.text();
  EXPECT_THAT(end.out, HasSubstr("D01"));
  EXPECT_THAT(end.out, HasSubstr("info.json"));
}

TEST_F(StatsTest, MistakesOfTheUserAreExitTwo) {
  const auto absent = troupe({"stats", "nowhere"});
  EXPECT_EQ(absent.exit_code, 2) << absent.text();
  EXPECT_THAT(absent.err, HasSubstr("nowhere"));
  EXPECT_EQ(stats({"--embodiment", "no_robot"}).exit_code, 2);
  EXPECT_EQ(stats({"--relative-keys", "tail"}).exit_code, 2);
  const auto out = stats({"--out", "x"});
  EXPECT_EQ(out.exit_code, 2);
  EXPECT_THAT(out.err, HasSubstr("--write-metadata"));
}

TEST_F(StatsTest, WorkersDoNotChangeTheReport) {
  ASSERT_TRUE(succeeded(stats({"--json", "one.json", "--workers", "1"})));
  ASSERT_TRUE(succeeded(stats({"--json", "four.json", "--workers", "4"})));
  EXPECT_EQ(read(dir_ / "one.json"), read(dir_ / "four.json"));
}

}  // namespace
}  // namespace troupe::app
