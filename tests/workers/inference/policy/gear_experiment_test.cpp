#include "workers/inference/policy/gear_experiment.h"

#include <gmock/gmock.h>

namespace troupe::workers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Part of a training configuration as OmegaConf saves it, with a reference left in.
constexpr const char* kConf = R"(
model:
  _target_: groot.vla.model.dreamzero.base_vla.VLA
image_resolution_height: 176
relative_action: true
relative_action_per_horizon: false
relative_action_keys:
- joint_position
modality_config_oxe_droid:
  video:
    delta_indices: [0, 1]
    modality_keys:
    - video.exterior_image_1_left
    - video.wrist_image_left
modality_configs:
  oxe_droid:
    video: ${modality_config_oxe_droid.video}
    state:
      modality_keys: [state.joint_position, state.gripper_position]
    action:
      modality_keys: [action.joint_position, action.gripper_position]
    language:
      modality_keys: [annotation.language.language_instruction, annotation.language.language_instruction_2]
transforms:
  oxe_droid:
    _target_: groot.vla.data.transform.ComposedModalityTransform
    transforms:
    - _target_: groot.vla.data.transform.VideoToTensor
      apply_to: ${modality_configs.oxe_droid.video.modality_keys}
    - {_target_: groot.vla.data.transform.VideoCrop, scale: 0.9, mode: random}
    - {_target_: groot.vla.data.transform.VideoResize, height: "${image_resolution_height}", width: 320, interpolation: linear}
    - _target_: groot.vla.data.transform.StateActionTransform
      apply_to: [state.joint_position]
      normalization_modes: {state.joint_position: q99, state.gripper_position: min_max}
    - _target_: groot.vla.data.transform.StateActionTransform
      normalization_modes:
        action.joint_position: mean_std
)";

GearExperiment parsed_experiment(const std::string& text, const std::string& tag = "oxe_droid") {
  return parse_gear_experiment(text, "conf.yaml", tag).value();
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(GearExperimentTest, KeysImagesAndModesAreRead) {
  const GearExperiment e = parsed_experiment(kConf);
  EXPECT_THAT(e.views, ElementsAre("exterior_image_1_left", "wrist_image_left")) << "through a reference";
  EXPECT_THAT(e.state_keys, ElementsAre("joint_position", "gripper_position"));
  EXPECT_THAT(e.action_keys, ElementsAre("joint_position", "gripper_position"));
  EXPECT_EQ(e.language_key, "language.language_instruction");
  EXPECT_EQ(e.image_height, 176) << "through a reference";
  EXPECT_EQ(e.image_width, 320);
  EXPECT_EQ(e.crop, 0.9);
  EXPECT_EQ(e.state_modes.at("gripper_position"), NormalizationMode::min_max);
  EXPECT_EQ(e.action_modes.at("joint_position"), NormalizationMode::mean_std);
  EXPECT_EQ(e.relative, true);
  EXPECT_THAT(e.relative_action_keys, ElementsAre("joint_position"));
}

TEST(GearExperimentTest, AnotherEmbodimentIsAbsentNotWrong) {
  const GearExperiment e = parsed_experiment(kConf, "agibot");
  EXPECT_TRUE(e.views.empty());
  EXPECT_FALSE(e.image_height.has_value());
  EXPECT_EQ(e.relative, true) << "that is said of the whole run";
  EXPECT_FALSE(parsed_experiment("model: {}").relative.has_value());
}

TEST(GearExperimentTest, ReferencesInACircleEnd) {
  const GearExperiment e =
      parsed_experiment("a: ${b}\nb: ${a}\nmodality_configs: {oxe_droid: {video: {modality_keys: \"${a}\"}}}\n");
  EXPECT_TRUE(e.views.empty());
}

TEST(GearExperimentTest, WhatCannotBeDoneIsRefusedWithItsLine) {
  const auto refused = [](const std::string& text) {
    const auto e = parse_gear_experiment(text, "conf.yaml", "oxe_droid");
    return e ? std::string("no error") : e.error().message();
  };
  EXPECT_THAT(refused(replaced(kConf, "min_max", "gaussian")),
              HasSubstr("state.gripper_position: normalization 'gaussian' is not one of"));
  EXPECT_THAT(refused(replaced(kConf, "scale: 0.9", "scale: much")), HasSubstr("VideoCrop.scale wants a number"));
  EXPECT_THAT(refused(replaced(kConf, "      apply_to: [state.joint_position]\n",
                               "      target_rotations: {state.left_rotation: rotation_6d}\n")),
              HasSubstr("target_rotations converts 'state.left_rotation'"));
  EXPECT_THAT(refused("a: [1"), HasSubstr("conf.yaml"));
  EXPECT_THAT(refused("a: 1\na: 2\n"), HasSubstr("duplicate key 'a'"));
}

TEST(GearExperimentTest, WhatIsWrittenIsReadBack) {
  PolicySpec spec;
  spec.embodiment.tag = "oxe_droid";
  spec.embodiment.views = {"left", "wrist"};
  spec.embodiment.language_key = "task";
  spec.image.height = 48;
  spec.image.width = 80;
  spec.image.crop = 0.75;
  spec.state = {{.name = "joint", .width = 2, .mode = NormalizationMode::min_max}};
  spec.action = {{.name = "joint", .width = 2, .mode = NormalizationMode::mean_std, .relative = true},
                 {.name = "gripper", .width = 1}};
  const std::string text = gear_experiment_yaml(spec);
  EXPECT_EQ(text, gear_experiment_yaml(spec));
  const GearExperiment e = parsed_experiment(text);
  EXPECT_THAT(e.views, ElementsAre("left", "wrist"));
  EXPECT_THAT(e.state_keys, ElementsAre("joint"));
  EXPECT_THAT(e.action_keys, ElementsAre("joint", "gripper"));
  EXPECT_EQ(e.language_key, "task");
  EXPECT_EQ(e.image_height, 48);
  EXPECT_EQ(e.image_width, 80);
  EXPECT_EQ(e.crop, 0.75);
  EXPECT_EQ(e.state_modes.at("joint"), NormalizationMode::min_max);
  EXPECT_EQ(e.action_modes.at("joint"), NormalizationMode::mean_std);
  EXPECT_EQ(e.action_modes.at("gripper"), NormalizationMode::q99);
  EXPECT_EQ(e.relative, true);
  EXPECT_THAT(e.relative_action_keys, ElementsAre("joint"));
}

}  // namespace
}  // namespace troupe::workers
