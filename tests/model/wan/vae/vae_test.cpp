// Wan's VAEs as codecs: batches, causality, memory, precision, errors.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <thread>

#include "model/wan/vae/vae_blocks.h"
#include "model/wan/vae/vae_codec.h"
#include "tests/model/wan/vae/random_vae.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

/// Equal to rounding: one part in 1e5 of the largest value in f32, 1e13 in f64.
void expect_same(const at::Tensor& got, const at::Tensor& want, const std::string& what) {
  const double limit = want.scalar_type() == at::kDouble ? 1e-13 : 1e-5;
  EXPECT_LE(max_difference(got, want), limit * largest(want)) << what;
}

class WanVaeTest : public ::testing::TestWithParam<const char*> {
 protected:
  WanVaeCodec codec(at::ScalarType dtype = at::kFloat, std::int64_t pass_bytes = WanVaeCodec::kDefaultPassBytes) const {
    return {config_, params_, dtype, some_norm(config_), pass_bytes};
  }
  VaeNetwork network(at::ScalarType dtype) const { return {config_, params_.view(), dtype, some_norm(config_)}; }
  at::Tensor video(std::int64_t batch, std::int64_t frames) const {
    return noise_video(batch, frames, 2 * config_.stride_hw, 3 * config_.stride_hw);
  }
  at::Tensor latents(std::int64_t batch, std::int64_t frames) const {
    return noise_latents(config_, batch, frames, 2, 3);
  }
  const LatentCodecConfig config_ = small_vae(GetParam());
  const FrozenParams params_ = random_vae(config_);
};

TEST_P(WanVaeTest, ShapesFollowTheStrides) {
  const auto c = codec();
  EXPECT_EQ(c.encode(video(2, 9)).sizes(), at::IntArrayRef({2, 6, 3, 2, 3}));
  EXPECT_EQ(c.decode(latents(2, 3)).sizes(), at::IntArrayRef({2, 3, 9, 2 * c.stride_hw(), 3 * c.stride_hw()}));
  EXPECT_EQ(c.encode(video(1, 1)).size(2), 1);
  EXPECT_EQ(c.decode(latents(1, 1)).size(2), 1);
  EXPECT_GE(c.bytes(), params_.bytes());
}

TEST_P(WanVaeTest, ABatchGivesWhatItsSamplesGive) {
  const auto c = codec();
  const auto clips = video(3, 9), z = latents(3, 3);
  const auto encoded = c.encode(clips), decoded = c.decode(z), first = c.encode_first_frame(clips.select(2, 0), 9);
  for (std::int64_t b = 0; b < 3; ++b) {
    expect_same(encoded.narrow(0, b, 1), c.encode(clips.narrow(0, b, 1)), "encode");
    expect_same(decoded.narrow(0, b, 1), c.decode(z.narrow(0, b, 1)), "decode");
    expect_same(first.narrow(0, b, 1), c.encode_first_frame(clips.narrow(0, b, 1).select(2, 0), 9), "first frame");
  }
}

TEST_P(WanVaeTest, LatentsOfAPrefixAreAPrefixOfTheLatents) {
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    const auto vae = network(dtype);
    const auto clip = video(1, 17).to(dtype), z = latents(1, 5).to(dtype);
    const auto whole = vae.encode(clip), played = vae.decode(z);
    for (std::int64_t f = 1; f < 5; ++f) {
      expect_same(vae.encode(clip.narrow(2, 0, 4 * f - 3)), whole.narrow(2, 0, f), "encode");
      expect_same(vae.decode(z.narrow(2, 0, f)), played.narrow(2, 0, 4 * f - 3), "decode");
    }
  }
}

TEST_P(WanVaeTest, FrameZeroDoesNotDependOnLaterFrames) {
  const auto vae = network(at::kDouble);
  const auto clip = video(1, 9).to(at::kDouble);
  auto other = clip.clone();
  other.narrow(2, 1, 8).neg_();
  const auto a = vae.encode(clip), b = vae.encode(other);
  expect_same(a.select(2, 0), b.select(2, 0), "frame 0");
  EXPECT_GT(max_difference(a.select(2, 1), b.select(2, 1)), 1e-3 * largest(a));
}

TEST_P(WanVaeTest, LaterLatentsDependOnFrameZero) {
  const auto vae = network(at::kDouble);
  const auto clip = video(1, 9).to(at::kDouble);
  auto other = clip.clone();
  other.narrow(2, 0, 1).neg_();
  EXPECT_GT(max_difference(vae.encode(clip).select(2, 2), vae.encode(other).select(2, 2)), 1e-6);
}

TEST_P(WanVaeTest, FramesThatFillNoGroupAreLeftOut) {
  const auto c = codec();
  const auto clip = video(1, 8);
  for (const std::int64_t frames : {6, 7, 8}) {
    EXPECT_TRUE(at::equal(c.encode(clip.narrow(2, 0, frames)), c.encode(clip.narrow(2, 0, 5)))) << frames;
  }
}

TEST_P(WanVaeTest, TheFirstFramesLatentsAreThoseOfItsVideoOfZeros) {
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    const auto vae = network(dtype);
    for (const std::int64_t frames : {1, 5, 9, 33, 97}) {
      const auto image = video(2, 1).select(2, 0).to(dtype);
      auto clip = image.new_zeros({2, 3, frames, image.size(2), image.size(3)});
      clip.select(2, 0).copy_(image);
      expect_same(vae.encode_still(image, frames), vae.encode(clip), std::to_string(frames));
    }
  }
  const auto image = video(2, 1).select(2, 0);
  const auto c = codec();
  expect_same(c.encode_first_frame(image, 12), c.LatentCodec::encode_first_frame(image, 12), "codec");
}

TEST_P(WanVaeTest, ALimitOfMemoryChangesNothing) {
  const auto free = codec(), narrow = codec(at::kFloat, 1);
  const auto clips = video(3, 17), z = latents(3, 5);
  // room for one sample but not two, and for two latent frames of a sample
  const auto frame = free.network().widest_encoder_frame(clips.size(3), clips.size(4));
  const auto one_sample = codec(at::kFloat, 4 * 5 * frame), two_frames = codec(at::kFloat, 4 * 2 * frame);
  for (const auto* c : {&narrow, &one_sample, &two_frames}) {
    expect_same(c->encode(clips), free.encode(clips), "encode");
    expect_same(c->decode(z), free.decode(z), "decode");
    const auto images = clips.select(2, 0);
    expect_same(c->encode_first_frame(images, 17), free.encode_first_frame(images, 17), "first frame");
  }
}

TEST_P(WanVaeTest, NormalisationIsTheConstantsRoundedToTheDtype) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto vae = network(dtype);
    const auto clip = video(1, 5);
    const auto norm = some_norm(config_);
    const auto constant = [&](const std::vector<float>& v) { return at::tensor(v).to(dtype).view({1, -1, 1, 1, 1}); };
    const auto want = (vae.encode_mean(clip) - constant(norm.mean)) * constant(norm.inverse_std());
    EXPECT_TRUE(at::equal(vae.encode(clip), want));
  }
}

TEST_P(WanVaeTest, Bf16IsCloseToF32UnderEitherRounding) {
  const auto exact = network(at::kFloat), rounded = network(at::kBFloat16);
  const auto clip = video(1, 9), z = latents(1, 3);
  const auto want = exact.encode(clip);
  const auto stepwise = rounded.encode(clip), late = rounded.encode(clip, nullptr, NormRounding::at_the_end);
  EXPECT_LE(relative_l2(stepwise, want), 0.03);
  EXPECT_LE(relative_l2(late, want), 0.03);
  EXPECT_FALSE(at::equal(stepwise, late)) << "the roundings are told apart";
  // widths of 5 average less rounding away than the real ones do
  EXPECT_LE(relative_l2(rounded.decode(z), exact.decode(z)), 0.08);
  EXPECT_EQ(stepwise.scalar_type(), at::kBFloat16);
  EXPECT_EQ(codec(at::kBFloat16).encode(clip).scalar_type(), at::kFloat);
}

TEST_P(WanVaeTest, ThreadsMayShareACodec) {
  const auto c = codec();
  const auto clip = video(1, 9);
  const auto want = c.encode(clip);
  std::vector<at::Tensor> got(3);
  std::vector<std::thread> threads;
  for (auto& out : got) {
    threads.emplace_back([&out, &c, &clip] {
      at::set_num_threads(1);
      out = c.encode(clip);
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& out : got) expect_same(out, want, "from a thread");
}

TEST_P(WanVaeTest, ShapesThatDoNotFitAreRefused) {
  const auto c = codec();
  EXPECT_THROW(c.encode(at::zeros({1, 3, 5, 20, 48})), c10::Error);
  EXPECT_THROW(c.encode(at::zeros({1, 4, 5, 32, 48})), c10::Error);
  EXPECT_THROW(c.encode(at::zeros({3, 5, 32, 48})), c10::Error);
  EXPECT_THROW(c.decode(at::zeros({1, 5, 2, 2, 3})), c10::Error);
  EXPECT_THROW(c.encode_first_frame(at::zeros({1, 3, 20, 48}), 5), c10::Error);
  EXPECT_THROW(network(at::kFloat).encode(at::zeros({1, 3, 4, 32, 48})), c10::Error);
}

TEST_P(WanVaeTest, TheFactoryRefusesWhatDoesNotFitByName) {
  const auto message = [](const LatentCodecConfig& config, const FrozenParams& params, at::ScalarType dtype) {
    const auto made = make_vae_codec(config, params, dtype);
    if (made) return std::string("made");
    EXPECT_EQ(made.error().code(), Errc::invalid_argument);
    return made.error().message();
  };
  EXPECT_EQ(message(config_, params_, at::kBFloat16), "made");
  auto wrong = config_;
  wrong.type = "dct";
  EXPECT_NE(message(wrong, params_, at::kFloat).find("wants wan21 or wan22"), std::string::npos);
  wrong = config_;
  wrong.stride_t = 2;
  EXPECT_NE(message(wrong, params_, at::kFloat).find("model.codec.stride_t is 2"), std::string::npos);
  wrong = config_;
  wrong.encoder_dim = 7;
  EXPECT_NE(message(wrong, params_, at::kFloat).find("encoder.conv1.weight has shape [4, "), std::string::npos);
  EXPECT_NE(message(config_, FrozenParams(), at::kFloat).find("encoder.conv1.weight is missing"), std::string::npos);
  EXPECT_NE(message(config_, params_, at::kHalf).find("f32, f64 or bf16"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Types, WanVaeTest, ::testing::Values("wan21", "wan22"),
                         [](const auto& param_info) { return std::string(param_info.param); });

TEST(VaeShortcutTest, BlocksAverageIntoTheirChannelGroups) {
  // 2 channels, blocks of 2 x 2 x 2: 16 values in 4 groups of 4
  const auto x = at::arange(2 * 3 * 2 * 4 * 2, at::kDouble).view({2, 3, 2, 4, 1, 2}).squeeze(4);
  const auto got = average_blocks(x.reshape({2, 3, 2, 4, 2}), 4, 2, 2);
  ASSERT_EQ(got.sizes(), at::IntArrayRef({2, 2, 1, 2, 4}));
  const auto a = x.reshape({2, 3, 2, 4, 2});
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t t = 0; t < 2; ++t) {
      for (std::int64_t column = 0; column < 2; ++column) {
        std::vector<double> sums(4, 0.0);
        for (std::int64_t i = 0; i < 16; ++i) {
          // i = ((c*2 + it)*2 + ih)*2 + iw; one zero frame stands before the three
          const auto c = i / 8, frame = 2 * t + i / 4 % 2 - 1, row = i / 2 % 2, pixel = 2 * column + i % 2;
          if (frame >= 0) sums[static_cast<std::size_t>(i / 4)] += a[b][frame][row][pixel][c].item<double>();
        }
        for (std::int64_t o = 0; o < 4; ++o) {
          EXPECT_DOUBLE_EQ(got[b][t][0][column][o].item<double>(), sums[static_cast<std::size_t>(o)] / 4);
        }
      }
    }
  }
}

TEST(VaeShortcutTest, RepeatedChannelsSpreadOverTheirBlocks) {
  const auto x = at::arange(2 * 3 * 4, at::kDouble).view({1, 2, 1, 3, 4});
  const auto whole = repeat_blocks(x, 2, 2, 2, false), start = repeat_blocks(x, 2, 2, 2, true);
  ASSERT_EQ(whole.sizes(), at::IntArrayRef({1, 4, 2, 6, 2}));
  EXPECT_TRUE(at::equal(start, whole.narrow(1, 1, 3)));
  for (std::int64_t t = 0; t < 4; ++t) {
    for (std::int64_t row = 0; row < 2; ++row) {
      for (std::int64_t column = 0; column < 6; ++column) {
        for (std::int64_t o = 0; o < 2; ++o) {
          // 2 * 8 / 4 = 4 copies of each channel, in the order (out, time, row, column)
          const auto place = ((o * 2 + t % 2) * 2 + row) * 2 + column % 2;
          EXPECT_EQ(whole[0][t][row][column][o].item<double>(), x[0][t / 2][0][column / 2][place / 4].item<double>());
        }
      }
    }
  }
}

TEST(VaeShortcutTest, PixelsBecomeChannelsColumnBeforeRow) {
  const auto video = at::arange(3 * 2 * 4 * 6, at::kFloat).view({1, 3, 2, 4, 6});
  const auto x = pixels_to_channels(video, 2);
  ASSERT_EQ(x.sizes(), at::IntArrayRef({1, 2, 2, 3, 12}));
  // channel c*4 + r*2 + q: row offset q, column offset r
  EXPECT_EQ(x[0][1][1][2][1 * 4 + 1 * 2 + 0].item<float>(), video[0][1][1][2][5].item<float>());
  EXPECT_EQ(x[0][0][1][0][2 * 4 + 0 * 2 + 1].item<float>(), video[0][2][0][3][0].item<float>());
  EXPECT_TRUE(at::equal(channels_to_pixels(x, 2), video));
  EXPECT_TRUE(at::equal(channels_to_pixels(pixels_to_channels(video, 1), 1), video));
}

TEST(VaeNormTest, UnpublishedWidthsAreNotScaled) {
  const auto norm = vae_norm(small_vae("wan21"));
  EXPECT_EQ(norm.mean, std::vector<float>(6, 0.0F));
  EXPECT_EQ(norm.inverse_std(), std::vector<float>(6, 1.0F));
}

TEST(VaeParamsTest, OnlyWansVaesHaveParameters) { EXPECT_TRUE(vae_params(LatentCodecConfig{}).empty()); }

}  // namespace
}  // namespace troupe::model
