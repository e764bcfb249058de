// Pixels on their way to [-1, 1], also against the reference's own numbers (golden/encoders, kind preproc).
#include "model/wan/unit_video.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support/golden_folder.h"
#include "tests/support/safetensors_file.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

class GoldenUnitVideoTest : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(GoldenUnitVideoTest, EveryRoundingMatchesTheReference) {
  const auto tensors = load_safetensors(GetParam().tensors());
  const auto& video = tensors.at("in.video_u8");
  const auto target = GetParam().json.value("target", std::vector<std::int64_t>{});
  const auto limits = GetParam().json.value("tolerance", nlohmann::json::object());
  int compared = 0;
  const auto compare = [&](const std::string& name, bool resize, PixelRounding rounding, double tolerance) {
    const auto want = tensors.find("out." + name);
    if (want == tensors.end()) return;
    const auto height = resize ? target.at(0) : video.size(2), width = resize ? target.at(1) : video.size(3);
    expect_near(to_unit_video(video, height, width, rounding), want->second, tolerance, name);
    ++compared;
  };
  compare("unit", false, PixelRounding::none, 0);
  compare("unit_bf16", false, PixelRounding::after_normalise, 0);
  compare("unit_inference_bf16", false, PixelRounding::before_normalise, 0);
  compare("resized", true, PixelRounding::none, limits.value("atol_resized", 2e-6));
  // the case words this one: one step of bf16 just below 1
  compare("resized_bf16", true, PixelRounding::after_normalise, 1.0 / 256);
  int stored = 0;
  for (const auto& [name, tensor] : tensors) stored += name.rfind("out.", 0) == 0 ? 1 : 0;
  EXPECT_EQ(compared, stored) << "outputs of other names are not compared";
  EXPECT_GT(compared, 0);
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenUnitVideoTest, ::testing::ValuesIn(golden_cases("encoders", "preproc")),
                         golden_case_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenUnitVideoTest);

/// u8 pixels [1, 2, 6, 8, 3] that take every value from 0 on.
at::Tensor some_pixels() { return at::arange(2 * 6 * 8 * 3).remainder(256).to(at::kByte).view({1, 2, 6, 8, 3}); }

TEST(UnitVideoTest, TheTwoRoundingsDifferAndLeaveOnlyBf16Values) {
  const auto pixels = some_pixels();
  const auto late = to_unit_video(pixels, 6, 8, PixelRounding::after_normalise);
  const auto early = to_unit_video(pixels, 6, 8, PixelRounding::before_normalise);
  EXPECT_FALSE(at::equal(late, early));
  const auto resized = to_unit_video(pixels, 3, 4, PixelRounding::after_normalise);
  for (const auto& video : {late, early, resized}) {
    EXPECT_EQ(video.scalar_type(), at::kFloat);
    EXPECT_TRUE(at::equal(video, video.to(at::kBFloat16).to(at::kFloat)));
  }
}

TEST(UnitVideoTest, BlackIsMinusOneAndWhiteIsOne) {
  auto pixels = at::zeros({1, 1, 2, 2, 3}, at::kByte);
  pixels.select(2, 1).fill_(255);
  for (const auto rounding : {PixelRounding::none, PixelRounding::after_normalise, PixelRounding::before_normalise}) {
    const auto video = to_unit_video(pixels, 2, 2, rounding);
    EXPECT_TRUE(video.select(3, 0).eq(-1).all().item<bool>());
    EXPECT_TRUE(video.select(3, 1).eq(1).all().item<bool>());
  }
}

TEST(UnitVideoTest, OtherShapesAndDtypesAreRefused) {
  EXPECT_THROW(to_unit_video(at::zeros({1, 2, 6, 8, 3}), 6, 8), c10::Error);
  EXPECT_THROW(to_unit_video(at::zeros({1, 2, 6, 8, 4}, at::kByte), 6, 8), c10::Error);
}

}  // namespace
}  // namespace troupe::model
