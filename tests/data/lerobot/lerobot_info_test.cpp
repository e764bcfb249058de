#include "data/lerobot/lerobot_info.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "data/lerobot/json_text.h"
#include "data/lerobot/lerobot_meta.h"
#include "data/lerobot/modality.h"
#include "tests/data/data_test_support.h"

namespace troupe::data {
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
  EXPECT_EQ(*fill_path_template("v/{episode_chunk:03d}/{video_key}/e_{episode_index:06d}.mp4",
                                {.episode_chunk = 2, .episode_index = 2017, .video_key = "observation.images.top"}),
            "v/002/observation.images.top/e_002017.mp4");
  EXPECT_EQ(*fill_path_template("{episode_index}-{episode_chunk:d}", {.episode_chunk = 1, .episode_index = 1234567}),
            "1234567-1");
  EXPECT_EQ(*fill_path_template("videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
                                PathFields::of_file(12, 1000, "cam")),
            "videos/cam/chunk-012/file-1000.mp4");
}

TEST(LerobotInfoTest, TemplatesRefuseWhatTheyDoNotKnow) {
  for (const char* text :
       {"{episode}", "{episode_index:>6}", "{episode_index", "{episode_index:0xd}", "{file_index}"}) {
    const auto filled = fill_path_template(text, {.episode_chunk = 0, .episode_index = 0});
    ASSERT_FALSE(filled) << text;
    EXPECT_EQ(filled.error().code(), Errc::invalid_argument);
  }
  EXPECT_FALSE(fill_path_template("{video_key}", PathFields::of_file(0, 0, "../../etc")));
}

TEST(LerobotInfoTest, ATemplateStaysInTheDataset) {
  for (const char* text : {"/data/{episode_index}.parquet", "../{episode_index}.parquet", "a/../../b.parquet"}) {
    auto json = minimal();
    json["data_path"] = text;
    EXPECT_THAT(message_of(json), ::testing::HasSubstr("leaves the dataset's folder"));
  }
}

TEST(LerobotInfoTest, ATemplateGivesNamesThatAFileSystemHolds) {
  const std::string longest(255, 'a');
  EXPECT_TRUE(fill_path_template(longest + "/{video_key}/" + longest, PathFields::of_file(0, 0, longest)));
  for (const std::string& text :
       std::vector<std::string>{"a/" + longest + "b", longest + "{file_index}/c", "{video_key}{video_key}/d"}) {
    const auto filled = fill_path_template(text, PathFields::of_file(0, 0, longest));
    ASSERT_FALSE(filled) << text;
    EXPECT_EQ(filled.error().code(), Errc::invalid_argument);
    EXPECT_THAT(filled.error().message(), ::testing::HasSubstr("at most 255"));
  }
}

TEST(LerobotInfoTest, RatesAreThoseThatAContainerHolds) {
  auto json = minimal();
  for (const double fps : {1e-30, 0.0009, -30.0, 0.0, 1e7}) {
    json["fps"] = fps;
    EXPECT_THAT(message_of(json), ::testing::HasSubstr("x/meta/info.json: fps is ")) << fps;
  }
  for (const double fps : {0.001, 29.97, 1e6}) {
    json["fps"] = fps;
    EXPECT_EQ(message_of(json), "accepted") << fps;
  }
}

TEST(JsonTextTest, NestingEndsBeforeTheStackDoes) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(parse_json<nlohmann::json>(nested(kMostJsonDepth)));
  const auto deep = parse_json<nlohmann::json>(nested(kMostJsonDepth + 1));
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().code(), Errc::invalid_argument);
  EXPECT_FALSE(parse_json<nlohmann::json>(std::string(1 << 20, '[')));
  // brackets in texts nest nothing
  EXPECT_TRUE(parse_json<nlohmann::json>("[\"" + std::string(100, '[') + "\\\"{\"]"));
  EXPECT_FALSE(parse_json<nlohmann::json>("{\"a\": "));
}

TEST(LerobotInfoTest, VersionThreeHasFilesInChunks) {
  auto json = minimal();
  json["codebase_version"] = "v3.0";
  json["chunks_size"] = 500;
  json["data_files_size_in_mb"] = 0.1;  // LeRobot takes and writes fractions
  json["video_files_size_in_mb"] = 500;
  json["fps"] = 12.5;
  json["future"] = {{"key", 1}};
  const auto info = parse_lerobot_info(json.dump(2), "info.json");
  EXPECT_TRUE(info->is_v3());
  EXPECT_EQ(info->chunks_size, 500);
  EXPECT_EQ(info->fps, 12.5);
  EXPECT_EQ(info->json, json.dump(2)) << "a converter carries over what it does not know";
}

TEST(LerobotInfoTest, CameraShapesAreReadByName) {
  auto json = minimal();
  json["features"]["cam"] = {{"dtype", "video"}, {"shape", {3, 480, 640}}, {"names", {"channels", "height", "width"}}};
  json["features"]["old"] = {{"dtype", "video"}, {"shape", {480, 640, 3}}, {"names", {"height", "width", "channel"}}};
  const auto info = parse_lerobot_info(json.dump(), "info.json");
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
  EXPECT_EQ(parse_lerobot_info(json.dump(), "info.json")->discarded_episodes, std::vector<std::int64_t>{3});
}

TEST(LerobotInfoTest, CountsAreWholeNumbersOrNotStated) {
  auto json = minimal();
  json["total_episodes"] = nullptr;
  json["total_frames"] = 360.0;
  json["chunks_size"] = nullptr;
  const auto info = parse_lerobot_info(json.dump(), "info.json");
  EXPECT_EQ(info->total_episodes, -1);
  EXPECT_EQ(info->total_frames, 360);
  EXPECT_EQ(info->chunks_size, 1000);
  for (const nlohmann::json& wrong : {nlohmann::json("3"), nlohmann::json(2.5), nlohmann::json(1e300),
                                      nlohmann::json(std::uint64_t{1} << 63), nlohmann::json::array()}) {
    json["total_frames"] = wrong;
    EXPECT_THAT(message_of(json), ::testing::HasSubstr("total_frames is " + wrong.dump()));
  }
}

TEST(LerobotInfoTest, ListsHoldWholeNumbers) {
  for (const nlohmann::json& wrong : {nlohmann::json(0.5), nlohmann::json("0"), nlohmann::json(true)}) {
    auto json = minimal();
    json["discarded_episode_indices"] = {3, wrong};
    EXPECT_THAT(message_of(json), ::testing::HasSubstr("info.json: discarded_episode_indices is " + wrong.dump()));
    json = minimal();
    json["features"]["observation.state"]["shape"] = {wrong};
    EXPECT_THAT(message_of(json),
                ::testing::HasSubstr("info.json: feature 'observation.state': shape is " + wrong.dump()));
  }
  auto json = minimal();
  json["discarded_episode_indices"] = "0";
  EXPECT_THAT(message_of(json), ::testing::HasSubstr("discarded_episode_indices is \"0\"; a list of whole numbers"));
  json["discarded_episode_indices"] = {3.0};
  EXPECT_EQ(parse_lerobot_info(json.dump(), "info.json")->discarded_episodes, std::vector<std::int64_t>{3});
}

TEST(LerobotInfoTest, PathsHaveNoControlCharacters) {
  for (const char* key : {"data_path", "video_path"}) {
    auto json = minimal();
    json[key] = std::string("a/{video_key}\0/{episode_index}", 30);
    EXPECT_THAT(message_of(json),
                ::testing::HasSubstr(std::string("info.json: ") + key + " is \"a/{video_key}\\u0000/"));
  }
  const auto filled = fill_path_template("{video_key}/x", PathFields::of_file(0, 0, std::string_view("a\0b", 3)));
  EXPECT_THAT(filled.error().message(), ::testing::HasSubstr("camera \"a\\u0000b\" cannot be part of a path"));
}

TEST(LerobotInfoTest, WhatWasNotWrittenToItsEndIsNoJson) {
  const std::string text = minimal().dump();
  ASSERT_TRUE(parse_lerobot_info(text + " \n", "info.json"));
  EXPECT_THAT(parse_lerobot_info(text + std::string(4096, '\0'), "x/meta/info.json").error().message(),
              ::testing::HasSubstr("x/meta/info.json: byte " + std::to_string(text.size() + 1) + " is zero"));
  EXPECT_THAT(parse_lerobot_info(text + std::string(kMostJsonBytes, ' '), "x/meta/info.json").error().message(),
              ::testing::HasSubstr("x/meta/info.json: " + std::to_string(text.size() + kMostJsonBytes) + " bytes"));
}

TEST(LerobotInfoTest, ListsWithoutEndAreRefused) {
  auto json = minimal();
  json["note"] = "\\\"" + std::string(300, '[');  // brackets inside a text are not lists
  EXPECT_TRUE(parse_lerobot_info(json.dump(), "info.json"));
  json["features"]["action"]["names"] = "HERE";
  std::string text = json.dump();
  text.replace(text.find("\"HERE\""), 6, std::string(300'000, '[') + std::string(300'000, ']'));
  EXPECT_THAT(parse_lerobot_info(text, "x/meta/info.json").error().message(),
              ::testing::HasSubstr("x/meta/info.json: arrays and objects are nested more than 64 deep"));
}

TEST(LerobotInfoTest, RefusalsNameTheFileAndTheValue) {
  auto json = minimal();
  json["codebase_version"] = "v1.6";
  EXPECT_THAT(message_of(json), ::testing::HasSubstr("x/meta/info.json: codebase_version is 'v1.6'"));
  json = minimal();
  json["features"]["observation.state"]["dtype"] = "complex64";
  EXPECT_THAT(message_of(json), ::testing::HasSubstr("'complex64'"));
  json = minimal();
  json.erase("data_path");
  EXPECT_THAT(message_of(json), ::testing::HasSubstr("data_path"));
  json = minimal();
  json["fps"] = "fast";
  EXPECT_THAT(message_of(json), ::testing::HasSubstr("x/meta/info.json: fps is \"fast\""));
  json = minimal();
  json["features"]["action"] = "float32";
  EXPECT_THAT(message_of(json), ::testing::HasSubstr("feature 'action'"));
  EXPECT_THAT(parse_lerobot_info("{", "x/meta/info.json").error().message(), ::testing::HasSubstr("x/meta/info.json"));
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
  EXPECT_EQ(columns->state_width(), 4u);
  EXPECT_EQ(columns->action_width(), 4u);
  EXPECT_EQ(columns->views.size(), 2u);
  EXPECT_EQ(columns->label_column, "task_index");
}

TEST_F(ModalityTest, ViewsAreFoundByShortNameAndByFeatureName) {
  embodiment_.views = {"observation.images.side", "front"};
  const auto columns = resolve_columns(modality_, info_, embodiment_);
  EXPECT_EQ(columns->views[0].column, "observation.images.side");
  EXPECT_EQ(columns->views[1].column, "observation.images.front");
}

TEST_F(ModalityTest, RefusalsNameTheConfigurationKeyAndWhatThereIs) {
  embodiment_.views = {"wrist"};
  EXPECT_THAT(refusal(), ::testing::HasSubstr("data.embodiment.views names 'wrist'; the dataset has front, side"));
  embodiment_.views = {};
  embodiment_.state_keys = {"arm"};
  EXPECT_THAT(refusal(), ::testing::HasSubstr("data.embodiment.state_keys names 'arm'; the dataset has state"));
  embodiment_.state_keys = {};
  embodiment_.relative_action_keys = {"arm"};
  EXPECT_THAT(refusal(), ::testing::HasSubstr("relative_action_keys names 'arm', which is not among action_keys"));
  embodiment_.relative_action_keys = {};
  embodiment_.language_key = "hints";
  EXPECT_THAT(refusal(), ::testing::HasSubstr("data.embodiment.language_key is 'hints'"));
}

TEST_F(ModalityTest, RelativeKeysPairByName) {
  modality_.state = {{"arm", "observation.state", 1, 4}, {"hand", "observation.state", 0, 1}};
  modality_.action = {{"hand", "action", 3, 4}, {"arm", "action", 0, 3}};
  embodiment_.state_keys = embodiment_.action_keys = {"arm", "hand"};
  embodiment_.relative_action_keys = {"arm"};
  const auto columns = resolve_columns(modality_, info_, embodiment_);
  EXPECT_TRUE(columns->action[0].relative);
  EXPECT_EQ(columns->action[0].reference.start, 1);
  EXPECT_FALSE(columns->action[1].relative);
}

TEST_F(ModalityTest, AnEmbodimentsSlicesAndCamerasStandBesideTheFiles) {
  embodiment_.slices = {{"state.arm", "observation.state[0:3]"},
                        {"state.hand", "observation.state[3:]"},
                        {"action.arm", "action[:3]"},
                        {"action.hand", "action[3:4]"},
                        {"action.all", "action"}};
  embodiment_.cameras = {{"wrist", "observation.images.side"}};
  embodiment_.state_keys = {"hand", "arm"};
  embodiment_.action_keys = {"arm", "hand", "all"};
  embodiment_.relative_action_keys = {"arm"};
  const auto columns = resolve_columns(modality_, info_, embodiment_);
  EXPECT_EQ(columns->state[0].start, 3);
  EXPECT_EQ(columns->state[0].end, 4);
  EXPECT_EQ(columns->state[1].end, 3);
  EXPECT_EQ(columns->action_width(), 8u);
  EXPECT_TRUE(columns->action[0].relative);
  ASSERT_EQ(columns->views.size(), 1u) << "the embodiment's cameras are its views";
  EXPECT_EQ(columns->views[0].name, "wrist");
  EXPECT_EQ(columns->views[0].column, "observation.images.side");
  embodiment_.views = {"front", "wrist"};
  EXPECT_EQ(resolve_columns(modality_, info_, embodiment_)->views[1].column, "observation.images.side");
}

TEST_F(ModalityTest, AnEmbodimentReplacesWhatModalityJsonSays) {
  modality_.action = {{"arm", "observation.state", 0, 4}};  // as gr1's modality.json mixes columns up
  modality_.video = {{"front", "observation.images.side"}};
  embodiment_.slices = {{"action.arm", "action[1:3]"}};
  embodiment_.cameras = {{"front", "observation.images.front"}};
  embodiment_.action_keys = {"arm"};
  const auto columns = resolve_columns(modality_, info_, embodiment_);
  EXPECT_EQ(columns->action[0].key.column, "action");
  EXPECT_EQ(columns->action_width(), 2u);
  EXPECT_EQ(columns->views[0].column, "observation.images.front");
}

TEST_F(ModalityTest, WrongSlicesNameTheKeyTheTextAndTheColumn) {
  const auto refusal_of = [&](const std::string& key, const std::string& text) {
    embodiment_.slices = {{key, text}};
    return refusal();
  };
  EXPECT_THAT(
      refusal_of("action.arm", "action[3:7]"),
      ::testing::HasSubstr("data.embodiment.slices.action.arm is \"action[3:7]\": column 'action' has 4 values"));
  EXPECT_THAT(refusal_of("action.arm", "actions[0:2]"),
              ::testing::HasSubstr("no column of numbers 'actions'; it has action, observation.state"));
  EXPECT_THAT(refusal_of("arm", "action[0:2]"), ::testing::HasSubstr("not state.KEY or action.KEY"));
  for (const char* text :
       {"", "action[", "action]", "[0:1]", "action[1]", "action[-1:2]", "action[a:2]", "action[0:2.5]", "action[2:2]",
        "action[3:1]", "action[0:99999999999999999999]", "observation.images.front[0:1]"}) {
    EXPECT_NE(refusal_of("action.arm", text).find("data.embodiment.slices.action.arm"), std::string::npos)
        << text << refusal();
  }
  embodiment_.slices = {};
  embodiment_.cameras = {{"wrist", "action"}};
  EXPECT_THAT(refusal(), ::testing::HasSubstr("data.embodiment.cameras.wrist is 'action'; the dataset has the cameras "
                                              "observation.images.front, observation.images.side"));
}

TEST_F(ModalityTest, ParaphrasesAreColumnsOfLabels) {
  auto json = minimal();
  json["features"]["action"] = {{"dtype", "float32"}, {"shape", {4}}};
  json["features"]["observation.images.front"] = {{"dtype", "image"}, {"shape", {8, 8, 3}}};
  for (const char* name : {"annotation.text", "annotation.text_2", "annotation.text_3"})
    json["features"][name] = {{"dtype", "int64"}, {"shape", {1}}};
  json.erase("video_path");
  info_ = parse_lerobot_info(json.dump(), "info.json").value();
  modality_ = read_modality("/nonexistent", info_).value();
  embodiment_.paraphrase_keys = {"text_2", "annotation.text_3", "text", "text_2"};
  const auto columns = resolve_columns(modality_, info_, embodiment_);
  EXPECT_EQ(columns->label_column, "annotation.text");
  EXPECT_EQ(columns->paraphrase_columns, (std::vector<std::string>{"annotation.text_2", "annotation.text_3"}));
  EXPECT_EQ(columns->label_columns().size(), 3u);
  EXPECT_EQ(columns->views[0].column, "observation.images.front") << "images in the table need no video_path";
  embodiment_.paraphrase_keys = {"text_9"};
  EXPECT_THAT(refusal(), ::testing::HasSubstr(
                             "data.embodiment.paraphrase_keys is 'text_9'; the dataset has text, text_2, text_3"));
}

TEST_F(ModalityTest, DepthMapsAreNoViewsByThemselves) {
  auto json = minimal();
  json["features"]["observation.images.depth"] = {
      {"dtype", "video"}, {"shape", {8, 8, 1}}, {"info", {{"video.is_depth_map", true}}}};
  json["features"]["observation.images.rgb"] = {
      {"dtype", "video"}, {"shape", {8, 8, 3}}, {"video_info", {{"video.is_depth_map", false}}}};
  const auto info = parse_lerobot_info(json.dump(), "info.json").value();
  const auto modality = read_modality("/nonexistent", info).value();
  ASSERT_EQ(modality.video.size(), 1u);
  EXPECT_EQ(modality.video[0].name, "rgb");
}

TEST_F(ModalityTest, KeysWithoutModalityAreColumnsOfNumbersOfOneDimension) {
  auto json = minimal();
  json["features"]["action"] = {{"dtype", "int64"}, {"shape", {2}}};
  json["features"]["action.gripper"] = {{"dtype", "bool"}, {"shape", {1}}};
  json["features"]["action.chunk"] = {{"dtype", "float32"}, {"shape", {2, 2}}};
  json["features"]["action.note"] = {{"dtype", "string"}, {"shape", {1}}};
  const auto info = parse_lerobot_info(json.dump(), "info.json").value();
  const auto modality = read_modality("/nonexistent", info).value();
  std::string names;
  for (const VectorKey& key : modality.action) names += key.name + fmt::format(":{} ", key.width());
  EXPECT_EQ(names, "action:2 gripper:1 ");
}

TEST(LerobotMetaTest, EveryRealDatasetIsRead) {
  int read = 0;
  for (const char* name : {"gr1-pick-place", "g1-bottle"}) {
    const std::string root = shared_data() + "/" + name;
    if (!std::filesystem::exists(root)) continue;
    const auto info = read_lerobot_info(root);
    const auto modality = read_modality(root, *info);
    EXPECT_FALSE(modality->state.empty());
    EXPECT_EQ(modality->video.size(), 1u);
    ASSERT_TRUE(read_tasks(root, *info));
    EXPECT_EQ(static_cast<std::int64_t>(read_episodes(root, *info)->size()), info->total_episodes);
    ++read;
  }
  if (read == 0) GTEST_SKIP() << "no datasets in " << shared_data();
}

}  // namespace
}  // namespace troupe::data
