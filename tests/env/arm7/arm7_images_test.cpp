// What the cameras see of scenes whose geometry is known.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "env/arm7/arm7_cameras.h"
#include "image/image_chain.h"
#include "tests/env/arm7/solo_arm7.h"

namespace troupe::env {
namespace {

EnvOptions with_labels(const std::string& profile) { return {.profile = profile, .options = {{"seg", "true"}}}; }

struct Pixel {
  std::size_t x, y;
  double depth;
};

/// Where the camera sees a point of the world.
Pixel project(const RenderCamera& camera, const Arm7Vec& point, std::int64_t width, std::int64_t height) {
  double v[3] = {};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t k = 0; k < 3; ++k) {
      v[i] += static_cast<double>(camera.pose.rotation[3 * k + i]) *
              (point[k] - static_cast<double>(camera.pose.position[k]));
    }
  }
  const double focal = 0.5 * static_cast<double>(height) / std::tan(0.5 * static_cast<double>(camera.fovy));
  return {static_cast<std::size_t>(0.5 * static_cast<double>(width) + focal * v[0] / -v[2]),
          static_cast<std::size_t>(0.5 * static_cast<double>(height) - focal * v[1] / -v[2]), -v[2]};
}

class Arm7ImagesTest : public ::testing::TestWithParam<const char*> {};

TEST_P(Arm7ImagesTest, TheCubeIsWhereTheCameraMustSeeIt) {
  const std::string name = GetParam();
  const bool is_droid = name.starts_with("ext");
  SoloArm7 env("lift", with_labels(is_droid ? "droid" : "libero"));
  const std::size_t field = env.field_of("seg." + name);
  ASSERT_LT(field, env.spec().observation.size());
  const std::int64_t height = env.spec().observation[field].shape[0], width = env.spec().observation[field].shape[1];
  int seen = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    env.reset(seed).value();
    const auto camera = arm7_camera(env.arm().arm(), env.arm().data(), name);
    const auto labels = env.floats(field);
    // the middle of its upper face
    Arm7Vec top = env.arm().episode().cube;
    top[2] += kCubeHalf - 1e-3;
    const Pixel at = project(*camera, top, width, height);
    if (at.x >= static_cast<std::size_t>(width) || at.y >= static_cast<std::size_t>(height))
      continue;  // wrist: beside the frame
    const int label = static_cast<int>(labels[at.y * static_cast<std::size_t>(width) + at.x]);
    if (label == arm7_label::robot) continue;  // a finger, or the hand, is before it
    EXPECT_EQ(label, arm7_label::cube) << "seed " << seed << " at " << at.x << "," << at.y;
    ++seen;
  }
  EXPECT_GE(seen, name == "wrist" ? 3 : 15);
}

INSTANTIATE_TEST_SUITE_P(Cameras, Arm7ImagesTest, ::testing::Values("front", "wrist", "ext0", "ext1"),
                         [](const auto& instance) { return std::string(instance.param); });

TEST(Arm7ImageTest, DepthIsTheDistanceToTheTableAlongTheView) {
  SoloArm7 env("reach", 1, with_labels("pixel"));
  const Arm7Vec point{0.75, 0.3, 0};  // on the table, beside the arm
  const auto camera = arm7_camera(env.arm().arm(), env.arm().data(), "front");
  const Pixel at = project(*camera, point, 84, 84);
  EXPECT_EQ(env.floats(env.field_of("seg.front"))[at.y * 84 + at.x], arm7_label::table);
  // within a pixel
  EXPECT_NEAR(static_cast<double>(env.floats(env.field_of("depth.front"))[at.y * 84 + at.x]), at.depth, 0.02);
}

TEST(Arm7ImageTest, TheGoalOfReachIsSeenAndTheGoallessTaskShowsNone) {
  SoloArm7 reach("reach", with_labels("pixel")), lift("lift", with_labels("pixel"));
  int seen = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    reach.reset(seed).value();
    lift.reset(seed).value();
    const auto with = reach.floats(reach.field_of("seg.front")), without = lift.floats(lift.field_of("seg.front"));
    seen += std::count(with.begin(), with.end(), float{arm7_label::goal}) > 0 ? 1 : 0;
    EXPECT_EQ(std::count(without.begin(), without.end(), float{arm7_label::goal}), 0);
  }
  EXPECT_GE(seen, 5);  // the others are hidden by the arm or above the frame
}

TEST(Arm7ImageTest, TheCubeHasTheColourOfTheEpisode) {
  SoloArm7 env("lift", with_labels("libero"));
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    env.reset(seed).value();
    const auto labels = env.floats(env.field_of("seg.front")), rgb = env.floats(env.field_of("rgb.front"));
    const auto& color = arm7_colors()[env.arm().episode().color].rgb;
    std::size_t pixels = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] != float{arm7_label::cube}) continue;
      ++pixels;
      // light scales all three alike
      const float light = rgb[3 * i] / color[0];
      EXPECT_NEAR(rgb[3 * i + 1], light * color[1], 4.5F);
      EXPECT_NEAR(rgb[3 * i + 2], light * color[2], 4.5F);
    }
    EXPECT_GT(pixels, 20U);
  }
}

TEST(Arm7ImageTest, RenderShowsWhatTheObservationShows) {
  SoloArm7 env("lift", 3, {.profile = "pixel"});
  std::vector<std::uint8_t> rgb(3 * 84 * 84);
  env.env().render("front", {84, 84, rgb}).value();
  EXPECT_EQ(std::vector<float>(rgb.begin(), rgb.end()), env.floats(env.field_of("rgb.front")));
}

EnvOptions views(const std::string& supersample) {
  return {.profile = "views", .options = {{"supersample", supersample}}};
}

/// What the loader of demonstrations makes of a recorded picture of `side` pixels, for a policy that sees 64.
std::vector<float> resized_recording(SoloArm7& env, const std::string& camera, std::int64_t side) {
  std::vector<std::uint8_t> recorded(static_cast<std::size_t>(3 * side * side)), small(3 * 64 * 64);
  env.env().render(camera, {side, side, recorded}).value();
  auto chain = ImageChain::make({.height = 64, .width = 64, .crop = 1}, "single", 1).value();
  chain.run_view(0, Rgb8View{recorded.data(), side, side, 3 * side}, {.height = side, .width = side}, small).value();
  return {small.begin(), small.end()};
}

TEST(Arm7ImageTest, SupersampledPicturesAreThoseOfRecordingsAndPlainOnesAreNot) {
  SoloArm7 plain("reach", 3, {.profile = "views"}), twice("reach", 3, views("2")), four("reach", 3, views("4"));
  for (const std::string camera : {"front", "side"}) {
    const std::size_t field = plain.field_of("rgb." + camera);
    EXPECT_EQ(twice.floats(field), resized_recording(plain, camera, 128)) << camera;
    EXPECT_EQ(four.floats(field), resized_recording(plain, camera, 256)) << camera;
    EXPECT_NE(plain.floats(field), twice.floats(field)) << camera;
    EXPECT_NE(four.floats(field), twice.floats(field)) << camera;
  }
}

TEST(Arm7ImageTest, SupersamplingOnceIsNoSupersampling) {
  SoloArm7 plain("reach", 3, {.profile = "views"}), once("reach", 3, views("1"));
  EXPECT_EQ(plain.observed(), once.observed());
}

TEST(Arm7ImageTest, SupersamplingLeavesDepthAndLabelsAsTheyAre) {
  SoloArm7 plain("lift", 3, with_labels("pixel"));
  SoloArm7 twice("lift", 3, {.profile = "pixel", .options = {{"seg", "true"}, {"supersample", "2"}}});
  const auto one = plain.observed(), other = twice.observed();
  for (std::size_t i = 0; i < one.size(); ++i)
    EXPECT_EQ(one[i] == other[i], i != plain.field_of("rgb.front")) << plain.spec().observation[i].name;
}

TEST(Arm7ImageTest, EveryCameraOfTheSpecDraws) {
  SoloArm7 env("pick_place", 3);
  for (const std::string& camera : env.spec().cameras) {
    std::vector<std::uint8_t> rgb(3 * 40 * 30);
    ASSERT_TRUE(env.env().render(camera, {40, 30, rgb})) << camera;
    EXPECT_GT(*std::max_element(rgb.begin(), rgb.end()), *std::min_element(rgb.begin(), rgb.end())) << camera;
  }
}

TEST(Arm7ImageTest, AnUnknownCameraIsNotFoundAndAWrongImageRefused) {
  SoloArm7 env("lift", 3);
  std::vector<std::uint8_t> rgb(3 * 40 * 30);
  EXPECT_EQ(env.env().render("top", {40, 30, rgb}).error().code(), Errc::not_found);
  EXPECT_EQ(env.env().render("front", {41, 30, rgb}).error().code(), Errc::invalid_argument);
}

TEST(Arm7ImageTest, TheWristCameraMovesWithTheHand) {
  SoloArm7 env("lift", 3);
  std::vector<std::uint8_t> before(3 * 32 * 32), after = before;
  env.env().render("wrist", {32, 32, before}).value();
  auto action = env.still();
  action[0] = 1;
  for (int i = 0; i < 5; ++i) env.step(action).value();
  env.env().render("wrist", {32, 32, after}).value();
  EXPECT_NE(before, after);
}

}  // namespace
}  // namespace troupe::env
