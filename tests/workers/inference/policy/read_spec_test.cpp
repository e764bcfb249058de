#include "workers/inference/policy/read_spec.h"

#include <gmock/gmock.h>

#include "tests/workers/inference/policy/gear_folder.h"
#include "tests/workers/inference/policy/tiny_policy.h"

namespace troupe::workers {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ReadSpecTest : public ::testing::Test {
 protected:
  PolicySpec read(const PolicyOptions& options = {}) { return read_policy_spec(folder_.root(), options).value(); }
  std::string refused(const PolicyOptions& options = {}) {
    const auto spec = read_policy_spec(folder_.root(), options);
    return spec ? "no error" : spec.error().message();
  }
  /// The configuration of the published 5B with two rows of statistics, as DROID's metadata lists more than is used.
  void write_droid() {
    folder_.write("spiece.model", "not read here");
    folder_.write("config.json",
                  R"({"model_type": "vla", "action_head_cfg": {"config": {"action_horizon": 24, "num_frames": 33,
      "target_video_height": 160, "target_video_width": 320, "vae_cfg": {"z_dim": 48, "dim": 160},
      "diffusion_model_cfg": {"model_type": "ti2v", "dim": 3072, "in_dim": 48, "out_dim": 48, "ffn_dim": 14336, "num_heads": 24,
        "num_layers": 30, "frame_seqlen": 50, "concat_first_frame_latent": false, "max_chunk_size": 4, "num_frame_per_block": 2,
        "num_action_per_block": 24, "num_state_per_block": 1}}}})");
    const auto key = [](int width) {
      const std::vector<double> low(static_cast<std::size_t>(width), -1.0), high(static_cast<std::size_t>(width), 1.0);
      return json{{"min", low}, {"max", high}, {"mean", low}, {"std", high}, {"q01", low}, {"q99", high}};
    };
    const json keys = {{"cartesian_position", key(6)}, {"gripper_position", key(1)}, {"joint_position", key(7)}};
    json video;
    for (const char* view : {"exterior_image_1_left", "exterior_image_2_left", "wrist_image_left"})
      video[view] = {{"channels", 3}};
    folder_.write(
        "experiment_cfg/metadata.json",
        json{{"oxe_droid", {{"statistics", {{"state", keys}, {"action", keys}}}, {"modalities", {{"video", video}}}}}}
            .dump());
  }
  GearFolder folder_;
};

std::vector<std::string> names(const std::vector<PolicyKey>& keys) {
  std::vector<std::string> out;
  for (const PolicyKey& key : keys) out.push_back(key.name);
  return out;
}

TEST_F(ReadSpecTest, AFolderSaysEverythingAboutAPolicy) {
  const PolicySpec wanted = tiny_spec();
  folder_.write_spec(wanted);
  const PolicySpec spec = read();
  EXPECT_EQ(spec.embodiment.tag, "tiny");
  EXPECT_EQ(spec.embodiment.layout, "horizontal");
  EXPECT_EQ(spec.embodiment.prompt, "single_view_human");
  EXPECT_THAT(spec.embodiment.views, ElementsAre("front", "side"));
  EXPECT_THAT(names(spec.state), ElementsAre("joints", "gripper"));
  EXPECT_TRUE(spec.action[0].relative);
  EXPECT_FALSE(spec.action[1].relative);
  EXPECT_EQ(spec.action[0].statistics[0].q99, wanted.action[0].statistics[0].q99);
  EXPECT_EQ(spec.image.height, 32);
  EXPECT_EQ(spec.window.video_offsets, wanted.window.video_offsets);
  EXPECT_EQ(spec.window.macro_stride, 8);
  EXPECT_EQ(spec.model.codec.type, "dct");
  EXPECT_TRUE(spec.model.text_encoder.tokenizer.empty());
}

TEST_F(ReadSpecTest, WithoutAConfYamlTheTableOfEmbodimentsSpeaks) {
  write_droid();
  const PolicySpec spec = read();
  EXPECT_THAT(names(spec.state), ElementsAre("joint_position", "gripper_position")) << "not the order of the metadata";
  EXPECT_EQ(spec.action_width(), 8);
  EXPECT_TRUE(spec.action[0].relative);
  EXPECT_THAT(spec.embodiment.views, ElementsAre("exterior_image_1_left", "exterior_image_2_left", "wrist_image_left"));
  EXPECT_EQ(spec.embodiment.layout, "droid");
  EXPECT_EQ(spec.embodiment.prompt, "oxe_droid");
  EXPECT_EQ(spec.embodiment.id, 17);
  EXPECT_EQ(spec.image.height, 160);
  EXPECT_EQ(spec.image.width, 320);
  EXPECT_THAT(spec.window.video_offsets, ElementsAre(0, 3, 6, 9, 12, 15, 18, 21));
  EXPECT_EQ(spec.window.macro_stride, 24);
  EXPECT_EQ(spec.model.text_encoder.tokenizer, folder_.root() + "/spiece.model");
}

TEST_F(ReadSpecTest, AConfYamlWinsOverTheTable) {
  write_droid();
  folder_.write("experiment_cfg/conf.yaml", R"(
relative_action: false
modality_configs: {oxe_droid: {state: {modality_keys: [state.gripper_position]}, action: {modality_keys: [action.gripper_position, action.joint_position]}}}
transforms: {oxe_droid: {transforms: [{_target_: a.VideoResize, height: 176, width: 320}]}}
)");
  const PolicySpec spec = read();
  EXPECT_THAT(names(spec.state), ElementsAre("gripper_position"));
  EXPECT_THAT(names(spec.action), ElementsAre("gripper_position", "joint_position"));
  EXPECT_FALSE(spec.action[1].relative);
  EXPECT_EQ(spec.image.height, 176);
}

TEST_F(ReadSpecTest, RelativeWithoutKeysMeansAllButGrippers) {
  write_droid();
  folder_.write("experiment_cfg/conf.yaml", "relative_action: true\n");
  const PolicySpec spec = read();
  EXPECT_TRUE(spec.action[0].relative);
  EXPECT_FALSE(spec.action[1].relative);
}

TEST_F(ReadSpecTest, NormStatsReplaceTheStatistics) {
  folder_.write_spec(tiny_spec());
  const char* stats =
      R"({"norm_stats": {"state": {"mean": [1, 2, 3], "std": [1, 1, 1], "q01": [-9, -8, -7], "q99": [9, 8, 7]},
                           "actions": {"mean": [1, 2, 3], "std": [1, 1, 1], "q01": [-6, -5, -4], "q99": [6, 5, 4]}}})";
  folder_.write("norm_stats.json", stats);
  EXPECT_THAT(read().state[1].statistics[0].q01, ElementsAre(-7));
  EXPECT_THAT(read().action[0].statistics[0].q99, ElementsAre(6, 5));
  folder_.remove("norm_stats.json");
  folder_.write("assets/droid/norm_stats.json", stats);
  EXPECT_THAT(read().action[1].statistics[0].q99, ElementsAre(4)) << "where OpenPI puts it";
  folder_.write("assets/libero/norm_stats.json", stats);
  EXPECT_THAT(refused(), HasSubstr("several norm_stats.json"));
}

TEST_F(ReadSpecTest, NormStatsAloneMakeOneKeyOfEachVector) {
  PolicySpec spec = tiny_spec();
  spec.embodiment.tag = "libero_sim";
  folder_.write_spec(spec);
  folder_.remove("experiment_cfg/conf.yaml");
  folder_.remove("experiment_cfg/metadata.json");
  EXPECT_THAT(refused(), HasSubstr("metadata.json does not exist"));
  folder_.write(
      "norm_stats.json",
      R"({"norm_stats": {"state": {"q01": [0, 1], "q99": [2, 3]}, "actions": {"q01": [0, 1, 2], "q99": [2, 3, 4]}}})");
  const PolicySpec read_back = read({.embodiment = "libero_sim"});
  EXPECT_THAT(names(read_back.state), ElementsAre("state"));
  EXPECT_THAT(names(read_back.action), ElementsAre("actions"));
  EXPECT_EQ(read_back.action_width(), 3);
  EXPECT_THAT(read_back.embodiment.views, ElementsAre("image", "wrist_image")) << "as RLinf names them";
  EXPECT_THAT(refused({.embodiment = "g2"}), HasSubstr("data.embodiment.views")) << "nothing names its cameras";
}

TEST_F(ReadSpecTest, WhatIsMissingIsSaidWithItsRemedy) {
  EXPECT_THAT(refused(), HasSubstr("neither manifest.json (Troupe) nor config.json (DreamZero)"));
  write_droid();
  folder_.remove("spiece.model");
  EXPECT_THAT(refused(), HasSubstr("holds no tokenizer"));
  EXPECT_EQ(read({.tokenizer = "/models/spiece.model"}).model.text_encoder.tokenizer, "/models/spiece.model");
  folder_.remove("experiment_cfg/metadata.json");
  EXPECT_THAT(refused({.tokenizer = "x"}), HasSubstr("experiment_cfg/metadata.json does not exist"));
}

TEST_F(ReadSpecTest, AnUnknownEmbodimentNeedsAPrompt) {
  PolicySpec spec = tiny_spec();
  spec.embodiment.prompt = "";
  folder_.write_spec(spec);
  EXPECT_THAT(refused(), HasSubstr("nothing says how prompts of embodiment 'tiny' are worded"));
}

TEST_F(ReadSpecTest, PartsThatDoNotFitAreAllListed) {
  PolicySpec spec = tiny_spec();
  spec.window.video_offsets = {0, 1, 2};
  spec.model.dit.action_dim = 2;
  folder_.write_spec(spec);
  const std::string text = refused();
  EXPECT_THAT(text, HasSubstr("data.window.video_offsets"));
  EXPECT_THAT(text, HasSubstr("the action keys have 3 values together; the model takes 2"));
}

}  // namespace
}  // namespace troupe::workers
