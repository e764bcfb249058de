// Wan's VAEs against the reference's own numbers (golden/encoders, kinds vae and vae_norm_constants).
#include <gtest/gtest.h>

#include "model/wan/clip_encoder.h"
#include "model/wan/dit_units.h"
#include "model/wan/features.h"
#include "model/wan/t5_encoder.h"
#include "model/wan/vae/causal_conv.h"
#include "model/wan/vae/vae_blocks.h"
#include "model/wan/vae/vae_stream.h"
#include "model/wan/weights/model_summary.h"
#include "tests/model/wan/golden_constructor.h"
#include "tests/model/wan/vae/golden_vae_case.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

class GoldenVaeTest : public ::testing::TestWithParam<GoldenCase> {
 protected:
  /// The case's clip in [-1, 1], or an undefined tensor.
  at::Tensor clip(const std::string& length) const {
    const auto pixels = case_.find("in." + length + ".video_u8");
    return pixels.defined() ? to_unit_video(pixels, pixels.size(2), pixels.size(3)) : at::Tensor();
  }
  at::Tensor out(const std::string& length, const std::string& name) const {
    return case_.find("out." + length + "." + name);
  }
  at::Tensor whole_groups(const at::Tensor& video) const { return video.narrow(2, 0, 1 + (video.size(2) - 1) / 4 * 4); }

  const GoldenVaeCase case_{GetParam()};
};

TEST_P(GoldenVaeTest, ParameterNamesAndShapesEqualTheCheckpoints) {
  testing::ParamShapes want;
  for (const auto& [name, tensor] : case_.weights()) want[name] = tensor.sizes().vec();
  EXPECT_EQ(shapes_of(vae_params(case_.config())), want);
}

TEST_P(GoldenVaeTest, TheCaseHasOutputsToCompare) {
  int found = 0;
  for (const auto& length : case_.lengths()) {
    for (const char* name : {"mean_raw", "latents", "decoded", "y"}) found += out(length, name).defined() ? 1 : 0;
    found += static_cast<int>(case_.traces(length).size());
  }
  EXPECT_GT(found, 0);
}

TEST_P(GoldenVaeTest, MeansAndLatentsMatchTheReference) {
  const auto codec = case_.codec();
  int compared = 0;
  for (const auto& length : case_.lengths()) {
    const auto video = clip(length);
    if (!video.defined()) continue;
    if (const auto want = out(length, "mean_raw"); want.defined()) {
      expect_near(codec->network().encode_mean(whole_groups(video)), want, case_.tolerance("atol_encode", want),
                  length);
      ++compared;
    }
    if (const auto want = out(length, "latents"); want.defined()) {
      expect_near(codec->encode(video), want, case_.tolerance("atol_encode", want), length);
      ++compared;
    }
  }
  if (compared == 0) GTEST_SKIP() << "the case has no latents";
}

TEST_P(GoldenVaeTest, DecodedVideoMatchesTheReference) {
  const auto codec = case_.codec();
  int compared = 0;
  for (const auto& length : case_.lengths()) {
    const auto z = case_.find("in." + length + ".z"), want = out(length, "decoded");
    if (!z.defined() || !want.defined()) continue;
    expect_near(codec->decode(z), want, case_.tolerance("atol_decode", want), length);
    ++compared;
  }
  if (compared == 0) GTEST_SKIP() << "the case has no decoded video";
}

TEST_P(GoldenVaeTest, TheFirstFramesChannelsMatchTheReference) {
  ModelConfig config;
  config.codec = case_.config();
  config.text_encoder.vocab = 300;
  config.text_encoder.dim = config.text_encoder.dim_attn = config.text_encoder.dim_ff = 8;
  config.text_encoder.num_heads = config.text_encoder.num_layers = 1;
  config.image_encoder.image_size = 28;
  config.image_encoder.dim = config.image_encoder.mlp_dim = config.image_encoder.head_dim_out = 8;
  config.image_encoder.num_heads = config.image_encoder.num_layers = 1;
  const FeatureEncoder features(config, FrozenParams::random(t5_params(config.text_encoder), 1, ""),
                                FrozenParams::random(clip_params(config.image_encoder), 1, ""), case_.codec());
  int compared = 0;
  for (const auto& length : case_.lengths()) {
    const auto video = clip(length), want = out(length, "y");
    if (!video.defined() || !want.defined()) continue;
    const auto got = features.first_frame_channels(video.select(2, 0), video.size(2));
    expect_near(got, want, case_.tolerance("atol_encode", want), length);
    ++compared;
  }
  if (compared == 0) GTEST_SKIP() << "the case has no y";
}

TEST_P(GoldenVaeTest, EveryModulesOutputMatchesTheReference) {
  const auto codec = case_.codec();
  const auto& network = codec->network();
  std::size_t compared = 0, wanted = 0;
  const auto run = [&](const std::vector<VaeLayer>& layers, at::Tensor x, const TensorMap& traces, const char* atol) {
    VaePass pass{network.params()};
    for (const auto& layer : layers) {
      x = run_layer(layer, x, pass);
      const auto name = layer.kind == VaeLayer::Kind::head ? layer.name + ".2" : layer.name;
      const auto want = traces.find(name);
      if (want == traces.end()) continue;
      const auto rows = (x.size(2) + 5) / 6, columns = (x.size(3) + 5) / 6;
      const auto got = x.permute({0, 4, 1, 2, 3}).slice(3, 0, x.size(2), rows).slice(4, 0, x.size(3), columns);
      // inside the network values are larger than at its ends
      const double scale = std::max(1.0, largest(want->second));
      expect_near(got, want->second, case_.tolerance(atol, want->second) * scale, name);
      ++compared;
    }
  };
  for (const auto& length : case_.lengths()) {
    const auto traces = case_.traces(length);
    if (const auto video = clip(length); video.defined()) {
      const auto pixels = pixels_to_channels(whole_groups(video).narrow(0, 0, 1), vae_pixel_block(case_.config()));
      run(vae_encoder_layers(case_.config()), pixels, traces, "atol_encode");
      wanted += testing::with_prefix(traces, "encoder.").size();
    }
    if (const auto z = case_.find("in." + length + ".z"); z.defined()) {
      const auto norm = case_.norm();
      const auto raw = z.narrow(0, 0, 1) / at::tensor(norm.inverse_std()).view({1, -1, 1, 1, 1}) +
                       at::tensor(norm.mean).view({1, -1, 1, 1, 1});
      const auto x = point_conv({network.params()}, "conv2", raw.permute({0, 2, 3, 4, 1}).contiguous());
      run(vae_decoder_layers(case_.config()), x, traces, "atol_decode");
      wanted += testing::with_prefix(traces, "decoder.").size();
    }
  }
  EXPECT_EQ(compared, wanted) << "modules of other names are not compared";
}

TEST_P(GoldenVaeTest, F64AgreesAndF32StaysAtItsRoundingFloor) {
  const auto single = case_.codec(), wide = case_.codec(at::kDouble);
  for (const auto& length : case_.lengths()) {
    if (const auto video = clip(length); video.defined()) {
      const auto exact = wide->network().encode(whole_groups(video).to(at::kDouble));
      EXPECT_LE(max_difference(single->encode(video), exact), 1e-5 * largest(exact)) << length;
      if (const auto want = out(length, "latents"); want.defined()) {
        expect_near(exact, want, case_.tolerance("atol_encode", want), length);
      }
    }
    if (const auto z = case_.find("in." + length + ".z"); z.defined()) {
      const auto exact = wide->network().decode(z.to(at::kDouble));
      EXPECT_LE(max_difference(single->decode(z), exact), 1e-5 * largest(exact)) << length;
    }
  }
}

TEST_P(GoldenVaeTest, Bf16StaysWithinOneAndAHalfTimesTheReferencesError) {
  const auto codec = case_.codec(at::kBFloat16);
  const auto checks = case_.json().value("checks", nlohmann::json::object());
  const auto limit = [&](const std::string& figure, const at::Tensor& rounded, const at::Tensor& exact) {
    return 1.5 * (checks.contains(figure) ? checks.at(figure).get<double>() : relative_l2(rounded, exact));
  };
  int compared = 0;
  for (const auto& length : case_.lengths()) {
    // the reference's bf16 outputs hold sample 0 only
    const auto rounded_z = out(length, "latents_bf16"), rounded_video = out(length, "decoded_bf16");
    const auto video = clip(length), z = case_.find("in." + length + ".z");
    if (video.defined() && rounded_z.defined() && out(length, "latents").defined()) {
      const auto exact = out(length, "latents").narrow(0, 0, 1);
      const auto got = codec->encode(video.narrow(0, 0, 1));
      EXPECT_LE(relative_l2(got, exact),
                limit(length + " bf16 latents vs fp32 latents, relative RMS", rounded_z, exact));
      ++compared;
    }
    if (z.defined() && rounded_video.defined() && out(length, "decoded").defined()) {
      const auto exact = out(length, "decoded").narrow(0, 0, 1);
      const auto got = codec->decode(z.narrow(0, 0, 1));
      EXPECT_LE(relative_l2(got, exact),
                limit(length + " bf16 decode vs fp32 decode, relative RMS", rounded_video, exact));
      ++compared;
    }
  }
  if (compared == 0) GTEST_SKIP() << "the case has no bf16 outputs";
}

TEST_P(GoldenVaeTest, StreamsGiveTheReferencesChunkedValues) {
  const auto codec = case_.codec();
  for (const auto& length : case_.lengths()) {
    const auto video = clip(length), latents = out(length, "latents");
    if (video.defined() && latents.defined()) {
      VaeEncodeStream stream(codec->network());
      std::vector<at::Tensor> parts{stream.push(video.narrow(2, 0, 1))};
      for (std::int64_t t = 1; t + 4 <= video.size(2); t += 4) parts.push_back(stream.push(video.narrow(2, t, 4)));
      expect_near(at::cat(parts, 2), latents, case_.tolerance("atol_encode", latents), length);
    }
    const auto z = case_.find("in." + length + ".z"), decoded = out(length, "decoded");
    if (z.defined() && decoded.defined()) {
      VaeDecodeStream stream(codec->network());
      std::vector<at::Tensor> parts;
      for (std::int64_t f = 0; f < z.size(2); ++f) parts.push_back(stream.push(z.narrow(2, f, 1)));
      expect_near(at::cat(parts, 2), decoded, case_.tolerance("atol_decode", decoded), length);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenVaeTest, ::testing::ValuesIn(golden_cases("encoders", "vae")), golden_case_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenVaeTest);

class GoldenVaeNormTest : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(GoldenVaeNormTest, ConstantsAndTheirBf16ValuesEqualTheReferences) {
  const std::map<std::string, LatentCodecConfig> types = {{"vae21", with_wan_codec({}, "wan21").codec},
                                                          {"vae22", with_wan_codec({}, "wan22").codec}};
  int compared = 0;
  for (const auto& [name, config] : types) {
    const auto& json = GetParam().json;
    if (!json.contains(name)) continue;
    const auto norm = vae_norm(config);
    const auto as_bf16 = [](const std::vector<float>& values) { return at::tensor(values).to(at::kBFloat16); };
    const std::map<std::string, at::Tensor> ours = {{"M", at::tensor(norm.mean)},
                                                    {"S", at::tensor(norm.std)},
                                                    {"M_bf16", as_bf16(norm.mean)},
                                                    {"inv_S_fp32", at::tensor(norm.inverse_std())},
                                                    {"inv_S_bf16", as_bf16(norm.inverse_std())}};
    for (const auto& [field, got] : ours) {
      if (!json.at(name).contains(field)) continue;
      const auto want = at::tensor(json.at(name).at(field).get<std::vector<float>>());
      EXPECT_TRUE(at::equal(got.to(at::kFloat), want)) << name << " " << field;
      ++compared;
    }
  }
  EXPECT_GT(compared, 0);
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenVaeNormTest, ::testing::ValuesIn(golden_cases("encoders", "vae_norm_constants")),
                         golden_case_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenVaeNormTest);

class GoldenVaeKeysTest : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(GoldenVaeKeysTest, FullSizeVaesHaveTheCheckpointsTensors) {
  const auto& components = GetParam().json.at("components");
  for (const auto& [name, type] : {std::pair{"vae21", "wan21"}, {"vae22", "wan22"}}) {
    if (!components.contains(name)) continue;
    const auto specs = vae_params(with_wan_codec({}, type).codec);
    EXPECT_EQ(testing::shapes_of(specs), components.at(name).at("shapes").get<testing::ParamShapes>()) << name;
    EXPECT_EQ(count_parameters({"", "", specs}), components.at(name).at("numel").get<std::int64_t>()) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenVaeKeysTest, ::testing::ValuesIn(golden_cases("encoders", "state_dict_keys")),
                         golden_case_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenVaeKeysTest);

}  // namespace
}  // namespace troupe::model
