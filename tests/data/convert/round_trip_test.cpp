// v2.1 -> v3.0 -> v2.1 gives back what was there: tables, coded frames, metadata, extra files.
#include "tests/data/convert/convert_test_support.h"
#include "tests/support/golden_folder.h"

namespace troupe::data {
namespace {

class RoundTripTest : public ::testing::Test {
 protected:
  void expect_identity(const std::string& source) {
    auto there = request_for(source, scratch_ / "v30");
    there.verify = ConvertVerify::full;
    EXPECT_TRUE(converted(there).left_out.empty());
    auto back = request_for(scratch_ / "v30", scratch_ / "v21", DatasetVersion::v21);
    back.verify = ConvertVerify::full;
    converted(back);
    expect_same_v2(scratch_ / "v21", source);
  }
  ScratchFolder scratch_;
};

TEST_F(RoundTripTest, ToyDatasetComesBack) {
  make_toy(scratch_ / "toy");
  write_text(scratch_ / "toy/meta/step_filter.jsonl", "{\"episode_index\": 1, \"step_indices\": [2, 3]}\n");
  write_text(scratch_ / "toy/LICENSE", "as you like\n");
  expect_identity(scratch_ / "toy");
}

TEST_F(RoundTripTest, UnknownKeysOfInfoAndEpisodesComeBack) {
  make_toy(scratch_ / "toy");
  auto info = json_of(scratch_ / "toy/meta/info.json");
  info["discarded_episode_indices"] = {1};
  info["robot_serial"] = "A-17";
  write_text(scratch_ / "toy/meta/info.json", info.dump(2));
  std::istringstream lines(text_of(scratch_ / "toy/meta/episodes.jsonl"));
  std::string line, text;
  for (int n = 0; std::getline(lines, line); ++n) {
    auto json = nlohmann::ordered_json::parse(line);
    json["operator"] = "op" + std::to_string(n);
    json["weights"] = {0.5, 1, n};
    if (n == 1) json["success"] = true;
    text += json.dump() + "\n";
  }
  write_text(scratch_ / "toy/meta/episodes.jsonl", text);
  expect_identity(scratch_ / "toy");
  EXPECT_EQ(json_of(scratch_ / "v30/meta/info.json")["robot_serial"], "A-17");
}

TEST_F(RoundTripTest, GoldenFormOfGr1ComesBack) {
  const fs::path v21 = find_golden("data/lerobot/v21");
  const std::string gr1 = shared_data() + "/gr1-pick-place";
  if (v21.empty() || !fs::exists(gr1)) GTEST_SKIP() << "no lerobot/v21 in " << golden_roots_text() << " or no " << gr1;
  fs::copy(v21, scratch_ / "gr1", fs::copy_options::recursive);
  fs::copy(gr1 + "/videos", scratch_ / "gr1/videos", fs::copy_options::recursive);
  expect_identity(scratch_ / "gr1");
}

TEST_F(RoundTripTest, G1BottleComesBack) {
  const std::string g1 = shared_data() + "/g1-bottle";
  if (!fs::exists(g1)) GTEST_SKIP() << "no " << g1;
  expect_identity(g1);
}

}  // namespace
}  // namespace troupe::data
