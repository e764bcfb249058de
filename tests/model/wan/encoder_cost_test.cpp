// Bytes against what is loaded, FLOPs against a table computed from the published sizes.
#include "model/wan/encoder_cost.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "model/wan/weights/load_features.h"
#include "model/wan/weights/model_summary.h"
#include "tests/model/wan/tiny_encoders.h"

namespace troupe::model {
namespace {

double tera(double flops) { return flops / 1e12; }

ModelConfig with_canvas(ModelConfig config, std::int64_t height, std::int64_t width) {
  config.target_height = height;
  config.target_width = width;
  return config;
}

const ModelConfig kWan22 = with_wan_codec({}, "wan22"), kWan21 = with_wan_codec({}, "wan21");

TEST(EncoderCostTest, FlopsAreThePublishedOnes) {
  const auto cost = encoder_cost(with_canvas(kWan22, 160, 320), {}, 2);
  EXPECT_NEAR(tera(cost.text_flops), 4.845, 0.0005);
  EXPECT_NEAR(tera(cost.image_flops), 0.324, 0.0005);
  EXPECT_NEAR(tera(cost.codec_flops), 5.958, 0.0005);
  EXPECT_NEAR(tera(cost.flops()), 4.845 + 0.324 + 5.958, 0.001);
  EXPECT_NEAR(tera(encoder_cost(with_canvas(kWan22, 176, 320), {}, 2).codec_flops), 6.554, 0.0005);
  EXPECT_NEAR(tera(encoder_cost(with_canvas(kWan21, 352, 640), {}, 2).codec_flops), 37.736, 0.0005);
}

TEST(EncoderCostTest, AClipOfNineFramesCostsThePublishedFlopsToo) {
  WindowConfig window;
  window.chunks = 1;
  EXPECT_NEAR(tera(encoder_cost(with_canvas(kWan22, 160, 320), window, 2).codec_flops), 1.67, 0.005);
  EXPECT_NEAR(tera(encoder_cost(with_canvas(kWan21, 352, 640), window, 2).codec_flops), 10.57, 0.005);
}

TEST(EncoderCostTest, DctIsOneProductForEachBlock) {
  auto config = with_canvas({}, 16, 32);
  config.codec = {.type = "dct", .channels = 8, .stride_t = 4, .stride_hw = 8};
  config.latent_frames_per_block = 1;
  WindowConfig window;
  window.chunks = 2;
  // 2 x 4 blocks a frame; 3 * 8 * 8 pixels in the first, four times as many in the two others
  EXPECT_EQ(encoder_cost(config, window, 4).codec_flops, 2.0 * 8 * 8 * (192 + 2 * 768));
}

TEST(EncoderCostTest, BytesAreThoseOfTheLoadedEncoders) {
  const std::vector<LatentCodecConfig> codecs = {
      {.type = "dct", .channels = 8, .stride_t = 4, .stride_hw = 8},
      {.type = "wan21", .channels = 16, .stride_t = 4, .stride_hw = 8, .encoder_dim = 4, .decoder_dim = 8},
      {.type = "wan22", .channels = 48, .stride_t = 4, .stride_hw = 16, .encoder_dim = 8, .decoder_dim = 4}};
  for (const auto& codec : codecs) {
    ModelConfig config;
    config.text_encoder = testing::tiny_text_encoder();
    config.image_encoder = testing::tiny_image_encoder();
    config.codec = codec;
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      const auto features = load_features(config, dtype, 1);
      const auto bytes = static_cast<std::int64_t>(c10::elementSize(dtype));
      EXPECT_EQ(encoder_cost(config, {}, bytes).bytes, (*features)->bytes()) << codec.type << " " << dtype;
    }
  }
}

}  // namespace
}  // namespace troupe::model
