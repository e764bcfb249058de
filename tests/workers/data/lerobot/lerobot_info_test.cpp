#include "workers/data/lerobot/lerobot_info.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/workers/data/data_test_support.h"
#include "workers/data/lerobot/lerobot_meta.h"
#include "workers/data/lerobot/modality.h"

namespace troupe {
namespace {

nlohmann::json minimal() {
  return {{"codebase_version", "v2.1"},
          {"fps", 30},
          {"data_path", "data/episode_{episode_index:06d}.parquet"},
          {"video_path", "videos/{video_key}/{episode_index}.mp4"},
          {"features", {{"observation.state", {{"dtype", "float32"}, {"shape", {4}}}}}}};
}

std::string message_of(const nlohmann::json& json) {
  const auto info = parse_lerobot_info(json.dump(), "x/meta/info.json");
  return info ? "accepted" : info.error().message();
}

TEST(LerobotInfoTest, TemplatesFillPaddedAndPlainFields) {
  EXPECT_EQ(*fill_path_template("v/{episode_chunk:03d}/{video_key}/e_{episode_index:06d}.mp4", 2, 2017,
                                "observation.images.top"),
            "v/002/observation.images.top/e_002017.mp4");
  EXPECT_EQ(*fill_path_template("{episode_index}-{episode_chunk:d}", 1, 1234567, ""), "1234567-1");
}

TEST(LerobotInfoTest, TemplatesRefuseWhatTheyDoNotKnow) {
  for (const char* text : {"{episode}", "{episode_index:>6}", "{episode_index", "{episode_index:0xd}"}) {
    const auto filled = fill_path_template(text, 0, 0, "");
    ASSERT_FALSE(filled) << text;
    EXPECT_EQ(filled.error().code(), Errc::invalid_argument);
  }
}

TEST(LerobotInfoTest, CameraShapesAreReadByName) {
  auto json = minimal();
  json["features"]["cam"] = {{"dtype", "video"}, {"shape", {3, 480, 640}}, {"names", {"channels", "height", "width"}}};
  json["features"]["old"] = {{"dtype", "video"}, {"shape", {480, 640, 3}}, {"names", {"height", "width", "channel"}}};
  const auto info = parse_lerobot_info(json.dump(), "info.json");
  ASSERT_TRUE(info) << info.error().message();
  EXPECT_EQ(info->find("cam")->shape, (std::vector<std::int64_t>{480, 640, 3}));
  EXPECT_EQ(info->find("old")->shape, (std::vector<std::int64_t>{480, 640, 3}));
  EXPECT_EQ(info->find("none"), nullptr);
}

TEST(LerobotInfoTest, ThePreReleaseFormHasItsTemplateElsewhere) {
  auto json = minimal();
  json.erase("video_path");
  json["videos"] = {{"videos_path", "v/{video_key}.mp4"}};
  EXPECT_EQ(parse_lerobot_info(json.dump(), "info.json")->video_path, "v/{video_key}.mp4");
}

TEST(LerobotInfoTest, UnknownKeysAreIgnored) {
  auto json = minimal();
  json["whatever"] = {1, 2};
  json["robot_type"] = nullptr;
  json["discarded_episode_indices"] = {3};
  const auto info = parse_lerobot_info(json.dump(), "info.json");
  ASSERT_TRUE(info) << info.error().message();
  EXPECT_EQ(info->discarded_episodes, std::vector<std::int64_t>{3});
}

TEST(LerobotInfoTest, RefusalsNameTheFileAndTheValue) {
  auto json = minimal();
  json["codebase_version"] = "v3.0";
  EXPECT_NE(message_of(json).find("x/meta/info.json: codebase_version is 'v3.0'"), std::string::npos)
      << message_of(json);
  json = minimal();
  json["features"]["observation.state"]["dtype"] = "complex64";
  EXPECT_NE(message_of(json).find("'complex64'"), std::string::npos) << message_of(json);
  json = minimal();
  json.erase("data_path");
  EXPECT_NE(message_of(json).find("data_path"), std::string::npos) << message_of(json);
  json = minimal();
  json["fps"] = "fast";
  EXPECT_NE(message_of(json).find("x/meta/info.json"), std::string::npos) << message_of(json);
  EXPECT_NE(parse_lerobot_info("{", "x/meta/info.json").error().message().find("x/meta/info.json"), std::string::npos);
}

/// A resolved layout of gr1-like metadata.
class ModalityTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto json = minimal();
    json["features"]["action"] = {{"dtype", "float32"}, {"shape", {4}}};
    json["features"]["observation.images.front"] = {{"dtype", "video"}, {"shape", {8, 8, 3}}};
    json["features"]["observation.images.side"] = {{"dtype", "video"}, {"shape", {8, 8, 3}}};
    json["features"]["task_index"] = {{"dtype", "int64"}, {"shape", {1}}};
    info_ = parse_lerobot_info(json.dump(), "info.json").value();
    modality_ = read_modality("/nonexistent", info_).value();
    embodiment_.layout = "horizontal";
  }
  std::string refusal() {
    const auto columns = resolve_columns(modality_, info_, embodiment_);
    return columns ? "accepted" : columns.error().message();
  }
  LerobotInfo info_;
  Modality modality_;
  EmbodimentConfig embodiment_;
};

TEST_F(ModalityTest, EmptyKeysMeanTheWholeColumnsAndAllViews) {
  const auto columns = resolve_columns(modality_, info_, embodiment_);
  ASSERT_TRUE(columns) << columns.error().message();
  EXPECT_EQ(columns->state_width(), 4u);
  EXPECT_EQ(columns->action_width(), 4u);
  EXPECT_EQ(columns->views.size(), 2u);
  EXPECT_EQ(columns->label_column, "task_index");
}

TEST_F(ModalityTest, ViewsAreFoundByShortNameAndByFeatureName) {
  embodiment_.views = {"observation.images.side", "front"};
  const auto columns = resolve_columns(modality_, info_, embodiment_);
  ASSERT_TRUE(columns) << columns.error().message();
  EXPECT_EQ(columns->views[0].column, "observation.images.side");
  EXPECT_EQ(columns->views[1].column, "observation.images.front");
}

TEST_F(ModalityTest, RefusalsNameTheConfigurationKeyAndWhatThereIs) {
  embodiment_.views = {"wrist"};
  EXPECT_NE(refusal().find("data.embodiment.views names 'wrist'; the dataset has front, side"), std::string::npos)
      << refusal();
  embodiment_.views = {};
  embodiment_.state_keys = {"arm"};
  EXPECT_NE(refusal().find("data.embodiment.state_keys names 'arm'; the dataset has state"), std::string::npos)
      << refusal();
  embodiment_.state_keys = {};
  embodiment_.relative_action_keys = {"arm"};
  EXPECT_NE(refusal().find("relative_action_keys names 'arm', which is not among action_keys"), std::string::npos)
      << refusal();
  embodiment_.relative_action_keys = {};
  embodiment_.language_key = "hints";
  EXPECT_NE(refusal().find("data.embodiment.language_key is 'hints'"), std::string::npos) << refusal();
}

TEST_F(ModalityTest, RelativeKeysPairByName) {
  modality_.state = {{"arm", "observation.state", 1, 4}, {"hand", "observation.state", 0, 1}};
  modality_.action = {{"hand", "action", 3, 4}, {"arm", "action", 0, 3}};
  embodiment_.state_keys = embodiment_.action_keys = {"arm", "hand"};
  embodiment_.relative_action_keys = {"arm"};
  const auto columns = resolve_columns(modality_, info_, embodiment_);
  ASSERT_TRUE(columns) << columns.error().message();
  EXPECT_TRUE(columns->action[0].relative);
  EXPECT_EQ(columns->action[0].reference.start, 1);
  EXPECT_FALSE(columns->action[1].relative);
}

TEST(LerobotMetaTest, EveryRealDatasetIsRead) {
  int read = 0;
  for (const char* name : {"gr1-pick-place", "g1-bottle"}) {
    const std::string root = shared_data() + "/" + name;
    if (!std::filesystem::exists(root)) continue;
    const auto info = read_lerobot_info(root);
    ASSERT_TRUE(info) << info.error().message();
    const auto modality = read_modality(root, *info);
    ASSERT_TRUE(modality) << modality.error().message();
    EXPECT_FALSE(modality->state.empty());
    EXPECT_EQ(modality->video.size(), 1u);
    ASSERT_TRUE(read_tasks(root));
    const auto episodes = read_episodes(root);
    ASSERT_TRUE(episodes);
    EXPECT_EQ(static_cast<std::int64_t>(episodes->size()), info->total_episodes);
    ++read;
  }
  if (read == 0) GTEST_SKIP() << "no datasets in " << shared_data();
}

}  // namespace
}  // namespace troupe
