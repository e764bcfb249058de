#include "workers/inference/policy/metadata.h"

#include <gmock/gmock.h>

namespace troupe::workers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kStats =
    R"({"min": [0, 1], "max": [2, 3], "mean": [1, 2], "std": [0.5, 0.5], "q01": [0.1, 1.1], "q99": [1.9, 2.9]})";

std::string metadata(const std::string& tag = "oxe_droid") {
  const std::string stats = kStats;
  return R"({")" + tag + R"(": {"embodiment_tag": ")" + tag + R"(", "statistics": {"state": {"joint": )" + stats +
         R"(}, "action": {"zeta": )" + stats + R"(, "alpha": )" + stats +
         R"(}}, "modalities": {"video": {"wrist": {"resolution": [320, 180]}, "front": {}}, "state": {}, "action": {}}}})";
}

std::string error_of(const std::string& text, const std::string& tag = "") {
  const auto result = parse_metadata(text, "m.json", tag);
  return result ? "no error" : result.error().message();
}

TEST(MetadataTest, KeysAndViewsKeepTheOrderOfTheFile) {
  const auto m = parse_metadata(metadata(), "m.json", "");
  EXPECT_EQ(m->tag, "oxe_droid");
  EXPECT_THAT(m->views, ElementsAre("wrist", "front"));
  ASSERT_EQ(m->action.size(), 2U);
  EXPECT_EQ(m->action[0].name, "zeta");
  EXPECT_EQ(m->action[1].name, "alpha");
  ASSERT_NE(find_key(m->state, "joint"), nullptr);
  EXPECT_EQ(find_key(m->state, "joint")->width, 2);
  EXPECT_THAT(find_key(m->state, "joint")->statistics[0].q99, ElementsAre(1.9, 2.9));
  EXPECT_EQ(find_key(m->action, "joint"), nullptr);
}

TEST(MetadataTest, SeveralEmbodimentsNeedAName) {
  std::string both = metadata("agibot");
  both.pop_back();
  both += "," + metadata("yam").substr(1);
  EXPECT_THAT(error_of(both), HasSubstr("several embodiments (agibot, yam); name one with --embodiment"));
  EXPECT_THAT(error_of(both, "xdof"), HasSubstr("has no embodiment 'xdof'; it has agibot, yam"));
  EXPECT_EQ(parse_metadata(both, "m.json", "yam")->tag, "yam");
  EXPECT_THAT(error_of(metadata(), "yam"), HasSubstr("has no embodiment 'yam'; it has oxe_droid"));
  EXPECT_THAT(error_of("{}"), HasSubstr("no embodiment"));
}

TEST(MetadataTest, StatisticsOfAHorizonAreReadStepByStep) {
  const auto m = parse_metadata(
      R"({"t": {"statistics": {"action": {"a": {"q01": [[0, 1], [2, 3], [4, 5]], "q99": [[6, 7], [8, 9], [10, 11]]}}}}})",
      "m.json", "");
  ASSERT_EQ(m->action[0].statistics.size(), 3U);
  EXPECT_EQ(m->action[0].width, 2);
  EXPECT_THAT(m->action[0].statistics[1].q01, ElementsAre(2, 3));
  EXPECT_THAT(m->action[0].statistics[2].q99, ElementsAre(10, 11));
}

TEST(MetadataTest, BadFilesAreRefusedByNameAndKey) {
  EXPECT_THAT(error_of("{"), HasSubstr("m.json"));
  EXPECT_THAT(error_of("[1]"), HasSubstr("wanted an object"));
  EXPECT_THAT(error_of(R"({"t": 3})"), HasSubstr("m.json: t"));
  EXPECT_THAT(error_of(R"({"t": {"statistics": {"state": {}}}})"), HasSubstr("t.statistics.action is missing"));
  EXPECT_THAT(error_of(R"({"t": {"statistics": {"action": {"a": {"q01": [0, 1], "q99": [2]}}}}})"),
              HasSubstr("action.a.q99 has 1 values where"));
  EXPECT_THAT(error_of(R"({"t": {"statistics": {"action": {"a": {"q01": ["x"]}}}}})"),
              HasSubstr("action.a.q01 holds \"x\""));
  EXPECT_THAT(error_of(R"({"t": {"statistics": {"action": {"a": {"q01": [[0], [1]], "q99": [[1]]}}}}})"),
              HasSubstr("a.q99 has 1 steps where"));
  EXPECT_THAT(error_of(R"({"t": {"statistics": {"action": {"a": {}}}}})"), HasSubstr("none of min, max"));
  EXPECT_THAT(error_of(R"({"t": {"statistics": {"action": {"a": {"q01": []}}}}})"), HasSubstr("no list of numbers"));
}

TEST(MetadataTest, NormStatsAreCutByTheKeysWidths) {
  const auto stats =
      parse_norm_stats(R"({"norm_stats": {"state": {"mean": [7, 8], "std": [1, 2], "q01": [10, 20], "q99": [30, 40]},
      "actions": {"mean": [1, 2, 3, 4, 0], "std": [1, 1, 1, 1, 0], "q01": [-1, -2, -3, -4, 0], "q99": [1, 2, 3, 4, 0]}}})",
                       "n.json");
  auto m = parse_metadata(metadata(), "m.json", "");
  // The vectors are concatenated in this order, whatever the metadata's.
  use_norm_stats(*stats, {"joint"}, {"alpha", "zeta"}, "n.json", *m).value();
  EXPECT_THAT(find_key(m->state, "joint")->statistics[0].q01, ElementsAre(10, 20));
  EXPECT_THAT(find_key(m->action, "alpha")->statistics[0].q99, ElementsAre(1, 2));
  EXPECT_THAT(find_key(m->action, "zeta")->statistics[0].mean, ElementsAre(3, 4));
  EXPECT_TRUE(find_key(m->action, "zeta")->statistics[0].min.empty()) << "OpenPI knows no minimum";
}

TEST(MetadataTest, BadNormStatsAreRefused) {
  EXPECT_THAT(parse_norm_stats("{}", "n.json").error().message(), HasSubstr("has no norm_stats"));
  EXPECT_THAT(parse_norm_stats(R"({"norm_stats": {"state": {"mean": [1]}}})", "n.json").error().message(),
              HasSubstr("norm_stats.actions is missing"));
  const auto few = parse_norm_stats(
      R"({"norm_stats": {"state": {"q01": [1], "q99": [2]}, "actions": {"q01": [1], "q99": [2]}}})", "n.json");
  auto m = parse_metadata(metadata(), "m.json", "");
  const auto used = use_norm_stats(*few, {"joint"}, {"alpha"}, "n.json", *m);
  EXPECT_THAT(used.error().message(), HasSubstr("has 1 values; key 'joint' is [0, 2)"));
}

}  // namespace
}  // namespace troupe::workers
