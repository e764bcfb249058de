#include "env/arm7/arm7_profile.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace troupe::env {
namespace {

using ::testing::HasSubstr;
using Shape = std::vector<std::int64_t>;

EnvSpec spec_of(Arm7Task task, const EnvOptions& options = {}) {
  return make_arm7_profile("arm7/x-v1", task, options).value().spec;
}

void expect_fields(const EnvSpec& spec, const std::vector<std::pair<std::string, Shape>>& wanted) {
  ASSERT_EQ(spec.observation.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(spec.observation[i].name, wanted[i].first);
    EXPECT_EQ(spec.observation[i].shape, wanted[i].second) << wanted[i].first;
  }
}

TEST(Arm7ProfileTest, TheStateIsTheDefaultAndHasEachTasksLength) {
  expect_fields(spec_of(Arm7Task::reach), {{"state", {31}}});
  expect_fields(spec_of(Arm7Task::push), {{"state", {41}}});
  expect_fields(spec_of(Arm7Task::lift), {{"state", {37}}});
  expect_fields(spec_of(Arm7Task::pick_place), {{"state", {42}}});
  EXPECT_FALSE(spec_of(Arm7Task::lift).observes_on_demand);
}

TEST(Arm7ProfileTest, AnInstructionIsAFieldOfTextInTheOrderOfNames) {
  const EnvSpec spec = spec_of(Arm7Task::lift, {.profile = "pixel", .options = {{"instruction", "true"}}});
  expect_fields(spec,
                {{"depth.front", {84, 84}}, {"instruction", {64}}, {"proprio", {25}}, {"rgb.front", {84, 84, 3}}});
  EXPECT_EQ(spec.observation[1].reader, EnvReader::text);
  EXPECT_TRUE(check_env_spec(spec));
}

TEST(Arm7ProfileTest, EpisodesHaveEachTasksLength) {
  EXPECT_EQ(spec_of(Arm7Task::reach).max_steps, 50);
  EXPECT_EQ(spec_of(Arm7Task::push).max_steps, 80);
  EXPECT_EQ(spec_of(Arm7Task::lift).max_steps, 80);
  EXPECT_EQ(spec_of(Arm7Task::pick_place).max_steps, 100);
  EXPECT_EQ(spec_of(Arm7Task::lift, {.max_steps = 7}).max_steps, 7);
}

TEST(Arm7ProfileTest, StateActsOnJointsAtTwentyHertz) {
  const EnvSpec spec = spec_of(Arm7Task::lift);
  EXPECT_EQ(spec.action.size, 8);
  EXPECT_EQ(spec.action.low, std::vector<float>(8, -1));
  EXPECT_EQ(spec.frame_skip, 10);
  EXPECT_NEAR(spec.control_hz, 20, 1e-9);
  EXPECT_TRUE(spec.has_success);
}

TEST(Arm7ProfileTest, PixelHasOneViewWithDepthAndProprioception) {
  const EnvSpec spec = spec_of(Arm7Task::lift, {.profile = "pixel"});
  expect_fields(spec, {{"depth.front", {84, 84}}, {"proprio", {25}}, {"rgb.front", {84, 84, 3}}});
  EXPECT_EQ(spec.observation[0].dtype, EnvDType::f32);
  EXPECT_EQ(spec.observation[2].dtype, EnvDType::u8);
  EXPECT_TRUE(spec.observes_on_demand);
}

TEST(Arm7ProfileTest, ViewsHideTheTasksPartFromThePolicy) {
  const EnvSpec spec = spec_of(Arm7Task::reach, {.profile = "views"});
  expect_fields(spec, {{"proprio", {25}}, {"rgb.front", {64, 64, 3}}, {"rgb.side", {64, 64, 3}}, {"task", {6}}});
  for (const EnvField& field : spec.observation)
    EXPECT_EQ(field.reader, field.name == "task" ? EnvReader::critic : EnvReader::policy) << field.name;
  EXPECT_EQ(spec_of(Arm7Task::reach, {.profile = "views", .options = {{"image_size", "32"}}}).observation[2].shape,
            (Shape{32, 32, 3}));
  EXPECT_TRUE(check_env_spec(spec));
}

TEST(Arm7ProfileTest, FramesAreWhatRecordingsHoldOfACamera) {
  expect_fields(spec_of(Arm7Task::reach, {.profile = "frames"}), {{"rgb.front", {64, 64, 3}}, {"state", {31}}});
  expect_fields(
      spec_of(Arm7Task::reach,
              {.profile = "frames", .options = {{"image_size", "128"}, {"instruction", "true"}, {"seg", "true"}}}),
      {{"instruction", {kArm7InstructionBytes}},
       {"rgb.front", {128, 128, 3}},
       {"seg.front", {128, 128}},
       {"state", {31}}});
}

TEST(Arm7ProfileTest, LiberoHasTwoViewsAndMovesTheTool) {
  const EnvSpec spec = spec_of(Arm7Task::lift, {.profile = "libero"});
  expect_fields(spec, {{"proprio", {8}}, {"rgb.front", {256, 256, 3}}, {"rgb.wrist", {256, 256, 3}}});
  EXPECT_EQ(spec.action.size, 7);
}

TEST(Arm7ProfileTest, DroidHasThreeViewsAtFifteenHertzAndAbsoluteJoints) {
  const auto profile = make_arm7_profile("arm7/x-v1", Arm7Task::lift, {.profile = "droid"}).value();
  expect_fields(profile.spec, {{"gripper_position", {1}},
                               {"joint_position", {7}},
                               {"rgb.ext0", {180, 320, 3}},
                               {"rgb.ext1", {180, 320, 3}},
                               {"rgb.wrist", {180, 320, 3}}});
  EXPECT_EQ(profile.control, Arm7Control::joint_abs);
  EXPECT_NEAR(profile.spec.control_hz, 15, 1e-9);
  EXPECT_EQ(profile.spec.frame_skip, 13);
  EXPECT_NEAR(static_cast<double>(profile.spec.action.high[5]), 3.7525, 1e-6);
}

TEST(Arm7ProfileTest, LabelsAndTheImagesSizeAreOptions) {
  expect_fields(
      spec_of(Arm7Task::lift, {.profile = "pixel", .options = {{"seg", "true"}, {"image_size", "128"}}}),
      {{"depth.front", {128, 128}}, {"proprio", {25}}, {"rgb.front", {128, 128, 3}}, {"seg.front", {128, 128}}});
}

TEST(Arm7ProfileTest, SupersamplingLeavesSizesAndTheTaskAsTheyAre) {
  const EnvOptions options{.profile = "views", .options = {{"supersample", "2"}}};
  EXPECT_EQ(make_arm7_profile("arm7/x-v1", Arm7Task::reach, options).value().supersample, 2);
  EXPECT_EQ(make_arm7_profile("arm7/x-v1", Arm7Task::reach, {.profile = "views"}).value().supersample, 1);
  expect_fields(spec_of(Arm7Task::reach, options),
                {{"proprio", {25}}, {"rgb.front", {64, 64, 3}}, {"rgb.side", {64, 64, 3}}, {"task", {6}}});
  EXPECT_TRUE(changes_observation("supersample"));
}

TEST(Arm7ProfileTest, SparseEpisodesEndOnSuccess) {
  const auto profile = make_arm7_profile("arm7/x-v1", Arm7Task::lift, {.options = {{"sparse", "true"}}}).value();
  EXPECT_TRUE(profile.is_sparse);
  EXPECT_TRUE(profile.ends_on_success);
  EXPECT_FALSE(make_arm7_profile("arm7/x-v1", Arm7Task::lift, {}).value().ends_on_success);
}

void expect_refused(const EnvOptions& options, const std::string& words) {
  const auto profile = make_arm7_profile("arm7/x-v1", Arm7Task::lift, options);
  ASSERT_FALSE(profile) << words;
  EXPECT_EQ(profile.error().code(), Errc::invalid_argument);
  EXPECT_THAT(profile.error().message(), HasSubstr(words));
}

TEST(Arm7ProfileTest, OptionsThatMakeNoSenseAreRefused) {
  expect_refused({.profile = "pixels"}, "did you mean 'pixel'?");
  expect_refused({.options = {{"sparse", "yes"}}}, "sparse is 'yes', wants true or false");
  expect_refused({.options = {{"seg", "true"}}}, "env.profile is state");
  expect_refused({.profile = "pixel", .options = {{"image_size", "84x"}}}, "image_size is '84x'");
  expect_refused({.profile = "pixel", .options = {{"image_size", "4"}}}, "wants 8 to 1024");
  expect_refused({.profile = "droid", .options = {{"image_size", "64"}}},
                 "for the profiles pixel, views, frames and libero");
  expect_refused({.profile = "views", .options = {{"supersample", "3"}}}, "supersample is '3', wants 1, 2 or 4");
  expect_refused({.options = {{"supersample", "2"}}}, "env.profile is state");
}

}  // namespace
}  // namespace troupe::env
