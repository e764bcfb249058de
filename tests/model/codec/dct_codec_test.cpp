// The DCT codec: orthonormality, the identity on latents, causality of frame 0, variance on real frames.
#include "model/codec/dct_codec.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "model/loss/flow_matching.h"
#include "tests/support/golden_folder.h"
#include "tests/support/safetensors_file.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

struct CodecShape {
  std::string name;
  std::int64_t channels, stride_t, stride_hw;
  double tolerance = 1e-5;
  friend std::ostream& operator<<(std::ostream& out, const CodecShape& s) { return out << s.name; }
};

at::Tensor draw(const std::vector<std::int64_t>& shape, std::uint64_t stream) {
  const std::uint64_t position = 3;
  return keyed_noise(21, stream, {&position, 1}, shape).squeeze(0);
}

class DctCodecTest : public ::testing::TestWithParam<CodecShape> {
 protected:
  const DctCodec codec_{GetParam().channels, GetParam().stride_t, GetParam().stride_hw};
};

TEST_P(DctCodecTest, EncodingWhatWasDecodedGivesTheLatentsBack) {
  const auto latents = draw({2, GetParam().channels, 3, 2, 3}, 900);
  const auto video = codec_.decode(latents);
  EXPECT_EQ(video.sizes(),
            at::IntArrayRef({2, 3, 1 + 2 * GetParam().stride_t, 2 * GetParam().stride_hw, 3 * GetParam().stride_hw}));
  EXPECT_LE(max_difference(codec_.encode(video), latents), GetParam().tolerance);
}

TEST_P(DctCodecTest, DecodingIsAnOrthogonalProjectionOfPixels) {
  const auto video = draw({1, 3, 1 + GetParam().stride_t, GetParam().stride_hw, 2 * GetParam().stride_hw}, 901);
  const auto kept = codec_.decode(codec_.encode(video)), lost = video - kept;
  // what is lost is orthogonal to everything that can be kept
  EXPECT_LE((kept * lost).sum().abs().item<double>(), 1e-3 * kept.square().sum().item<double>());
  EXPECT_LE(max_difference(codec_.encode(lost), at::zeros_like(codec_.encode(lost))), 1e-4);
}

TEST_P(DctCodecTest, ChannelsAreDistinctFrequenciesInsideTheBlock) {
  const auto chosen = choose_dct_channels(GetParam().channels, GetParam().stride_t, GetParam().stride_hw);
  for (const auto* list : {&chosen.group, &chosen.first}) {
    std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>> seen;
    for (const auto& f : *list) {
      EXPECT_LT(f.t, list == &chosen.first ? 1 : GetParam().stride_t);
      EXPECT_LT(f.y, GetParam().stride_hw);
      EXPECT_LT(f.x, GetParam().stride_hw);
      seen.insert({f.t, f.y, f.x, f.color});
    }
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(GetParam().channels));
  }
  for (std::size_t c = 0; c < chosen.group.size(); ++c) {
    if (chosen.group[c].t == 0) {
      EXPECT_TRUE(chosen.group[c] == chosen.first[c]) << "channel " << c;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, DctCodecTest,
    ::testing::Values(CodecShape{"wan22", 48, 4, 16}, CodecShape{"wan21", 16, 4, 8},
                      CodecShape{"tiny", 12, 4,
                                 4},  // every coefficient: f32 rounding of the strongest, over the weakest's deviation
                      CodecShape{"everything", 3 * 4, 1, 2, 3e-5}),
    [](const auto& param_info) { return param_info.param.name; });

TEST(DctCodecFramesTest, LaterFramesDoNotChangeEarlierLatents) {
  const DctCodec codec(48, 4, 16);
  const auto video = draw({1, 3, 9, 16, 32}, 902);
  // The library may sum a product of fewer rows in another order: 2e-6 was seen with AVX2, 0 with AVX-512.
  constexpr double kTolerance = 5e-6;
  EXPECT_LE(max_difference(codec.encode(video).narrow(2, 0, 2), codec.encode(video.narrow(2, 0, 5))), kTolerance);
  EXPECT_LE(max_difference(codec.encode(video).narrow(2, 0, 1), codec.encode(video.narrow(2, 0, 1))), kTolerance);
}

TEST(DctCodecFramesTest, FramesThatDoNotFillAGroupAreLeftOut) {
  const DctCodec codec(12, 4, 4);
  const auto video = draw({1, 3, 8, 8, 8}, 903);
  EXPECT_EQ(codec.encode(video).size(2), 2);
  EXPECT_TRUE(at::equal(codec.encode(video), codec.encode(video.narrow(2, 0, 5))));
}

TEST(DctCodecFramesTest, AConstantGreyVideoHasOneChannel) {
  const DctCodec codec(48, 4, 16);
  const auto latents = codec.encode(at::full({1, 3, 5, 16, 16}, 0.5, at::TensorOptions().dtype(at::kFloat)));
  // 0.5 in all three colours is 0.5 sqrt(3) of luma; both kinds of block scale by the same deviation
  EXPECT_LE((latents.select(1, 0) - 0.5 * std::sqrt(3.0) / 0.9).abs().max().item<double>(), 1e-5);
  EXPECT_LE(latents.narrow(1, 1, 47).abs().max().item<double>(), 1e-4);
}

TEST(DctCodecFramesTest, RecordedRobotFramesHaveAboutUnitVariance) {
  const auto path = testing::find_golden("data/decode_frames.safetensors");
  if (path.empty()) GTEST_SKIP() << "no decode_frames.safetensors in " << testing::golden_roots_text();
  const DctCodec codec(48, 4, 16);
  std::vector<at::Tensor> latents;
  for (const auto& [name, frame] : testing::load_safetensors(path)) {
    if (frame.scalar_type() != at::kByte || frame.dim() != 3) continue;
    const auto crop = frame.narrow(0, 0, frame.size(0) / 16 * 16).narrow(1, 0, frame.size(1) / 16 * 16);
    const auto video = (crop.to(at::kFloat) / 127.5 - 1.0).permute({2, 0, 1}).unsqueeze(0).unsqueeze(2);
    latents.push_back(codec.encode(video).flatten(2).squeeze(0));
  }
  ASSERT_FALSE(latents.empty());
  const auto rms = at::cat(latents, 1).square().mean(1).sqrt();
  EXPECT_GT(rms.median().item<double>(), 0.5);
  EXPECT_LT(rms.median().item<double>(), 2.0);
  EXPECT_LT(rms.max().item<double>(), 4.0);
}

TEST(LatentCodecTest, TooManyChannelsAreRefusedWithTheLimit) {
  LatentCodecConfig config;
  config.stride_hw = 2;
  const auto codec = make_latent_codec(config);
  EXPECT_EQ(codec.error().code(), Errc::invalid_argument);
  EXPECT_NE(codec.error().message().find("12 coefficients"), std::string::npos) << codec.error().message();
}

TEST(LatentCodecTest, CodecsWithWeightsAreRefusedByName) {
  LatentCodecConfig config;
  config.type = "wan22";
  const auto codec = make_latent_codec(config);
  EXPECT_EQ(codec.error().code(), Errc::invalid_argument);
  EXPECT_NE(codec.error().message().find("\"wan22\", which has weights"), std::string::npos) << codec.error().message();
}

TEST(LatentCodecTest, AFirstFramesLatentsAreThoseOfItsVideoOfZeros) {
  const DctCodec codec(6, 4, 8);
  const auto image = at::arange(2 * 3 * 16 * 24, at::kFloat).view({2, 3, 16, 24}).sin();
  auto video = at::zeros({2, 3, 9, 16, 24});
  video.select(2, 0).copy_(image);
  EXPECT_TRUE(at::equal(codec.encode_first_frame(image, 9), codec.encode(video)));
}

}  // namespace
}  // namespace troupe::model
