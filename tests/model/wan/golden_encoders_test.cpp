// The frozen encoders and the pixels before them against the reference's own numbers (golden/encoders).
#include <gtest/gtest.h>

#include "model/wan/clip_encoder.h"
#include "model/wan/dit_units.h"
#include "model/wan/features.h"
#include "model/wan/t5_encoder.h"
#include "tests/support/golden_folder.h"
#include "tests/support/safetensors_file.h"
#include "tests/support/tensor_checks.h"

namespace troupe {
namespace {

using testing::expect_near;
using testing::golden_cases;
using testing::GoldenCase;
using testing::load_safetensors;
using testing::TensorMap;
using testing::with_prefix;

TEST(GoldenEncodersFolderTest, EveryKindIsTestedOrNamed) {
  testing::expect_known_kinds("encoders", {"umt5", "clip", "preproc", "sentencepiece", "state_dict_keys"},
                              {"vae", "vae_norm_constants", "text_clean", "text_char_map", "prompts"});
}

ParamView view_of(const TensorMap& weights, at::ScalarType dtype = at::kFloat) {
  ParamView view;
  for (const auto& [name, tensor] : weights) view.set(name, tensor.to(dtype));
  return view;
}

std::map<std::string, std::vector<std::int64_t>> shapes_of(const std::vector<ParamSpec>& specs) {
  std::map<std::string, std::vector<std::int64_t>> out;
  for (const auto& spec : specs) out[spec.name] = spec.shape;
  return out;
}

class GoldenT5Test : public ::testing::TestWithParam<GoldenCase> {
 protected:
  static TextEncoderConfig config(const nlohmann::json& json) {
    TextEncoderConfig c;
    c.vocab = json.at("vocab").get<std::int64_t>();
    c.dim = json.at("dim").get<std::int64_t>();
    c.dim_attn = json.at("dim_attn").get<std::int64_t>();
    c.dim_ff = json.at("dim_ffn").get<std::int64_t>();
    c.num_heads = json.at("num_heads").get<std::int64_t>();
    c.num_layers = json.at("num_layers").get<std::int64_t>();
    c.num_buckets = json.at("num_buckets").get<std::int64_t>();
    return c;
  }
  const TensorMap tensors_ = load_safetensors(GetParam().tensors());
  const TensorMap in_ = with_prefix(tensors_, "in."), out_ = with_prefix(tensors_, "out.");
};

TEST_P(GoldenT5Test, ParameterNamesAndShapesEqualTheCheckpoints) {
  std::map<std::string, std::vector<std::int64_t>> want;
  for (const auto& [name, tensor] : with_prefix(tensors_, "w.")) want[name] = tensor.sizes().vec();
  EXPECT_EQ(shapes_of(t5_params(config(GetParam().json))), want);
}

TEST_P(GoldenT5Test, HiddenStatesMatchTheReference) {
  const auto c = config(GetParam().json);
  const auto hidden = t5_encode(c, view_of(with_prefix(tensors_, "w.")), in_.at("ids"), in_.at("mask"));
  const double tolerance = GetParam().json.at("tolerance").at("atol_hidden").get<double>();
  expect_near(hidden, out_.at("hidden"), tolerance, "hidden");
}

TEST_P(GoldenT5Test, ZeroedTailsMatchTheReference) {
  const auto c = config(GetParam().json);
  const auto hidden = t5_encode(c, view_of(with_prefix(tensors_, "w.")), in_.at("ids"), in_.at("mask"));
  const std::map<std::string, TailMode> modes = {{"encode_prompt_batch_min", TailMode::batch_min},
                                                 {"encode_prompt_per_sample", TailMode::per_sample}};
  for (const auto& [name, mode] : modes) {
    if (out_.count(name) == 0) continue;
    const auto got = zero_tail(hidden, in_.at("mask"), mode), want = out_.at(name);
    EXPECT_TRUE(at::equal(got.eq(0), want.eq(0))) << name;
    // recorded after a cast to bf16: one step of 2^-8
    EXPECT_TRUE(((got - want).abs() <= want.abs() / 256 + 5e-5).all().item<bool>()) << name;
  }
}

TEST_P(GoldenT5Test, AFeatureEncoderOfTheseWeightsGivesTheTailsOfBothModes) {
  ModelConfig model;
  model.text_encoder = config(GetParam().json);
  model.image_encoder = {
      .image_size = 28, .patch_size = 14, .dim = 8, .mlp_dim = 8, .num_heads = 2, .num_layers = 1, .head_dim_out = 8};
  model.codec = {.type = "dct", .channels = 6, .stride_t = 4, .stride_hw = 8};
  std::map<std::string, at::Tensor> weights;
  for (const auto& [name, tensor] : with_prefix(tensors_, "w.")) weights[name] = tensor;
  for (const auto& [name, tail] : {std::pair("encode_prompt_batch_min", "batch_min"),
                                   std::pair("encode_prompt_per_sample", "per_sample")}) {
    if (out_.count(name) == 0) continue;
    model.text_encoder.tail = tail;
    FeatureEncoder encoder(model, FrozenParams::from_tensors(t5_params(model.text_encoder), weights).value(),
                           FrozenParams::random(clip_params(model.image_encoder), 1, ""),
                           std::move(make_latent_codec(model.codec)).value());
    const auto want = out_.at(name);
    for (int round = 0; round < 2; ++round) {  // new, then from the cache
      const auto got = encoder.encode_text(in_.at("ids"), in_.at("mask"));
      EXPECT_TRUE(at::equal(got.eq(0), want.eq(0))) << name;
      EXPECT_TRUE(((got - want).abs() <= want.abs() / 256 + 5e-5).all().item<bool>()) << name;
    }
  }
}

TEST_P(GoldenT5Test, TheWrittenOutGeluMatchesTheReference) {
  if (in_.count("gelu_x") == 0) GTEST_SKIP() << "the case has no gelu_x";
  const auto& x = in_.at("gelu_x");
  expect_near(t5_gelu(x), out_.at("gelu_y"), GetParam().json.at("tolerance").at("gelu").get<double>(), "gelu");
  // in bf16 the rounding of every operation stays within a few steps of 2^-8
  const auto half = t5_gelu(x.to(at::kBFloat16)).to(at::kFloat), want = t5_gelu(x.to(at::kBFloat16).to(at::kFloat));
  EXPECT_TRUE(((half - want).abs() <= want.abs() * 0.03 + 0.01).all().item<bool>());
}

TEST_P(GoldenT5Test, Bf16StaysWithinOneAndAHalfTimesTheReferencesError) {
  if (out_.count("hidden_bf16") == 0) GTEST_SKIP() << "the case has no bf16 output";
  const auto c = config(GetParam().json);
  const auto got = t5_encode(c, view_of(with_prefix(tensors_, "w."), at::kBFloat16), in_.at("ids"), in_.at("mask"));
  const auto own = testing::relative_l2(out_.at("hidden_bf16"), out_.at("hidden"));
  EXPECT_LE(testing::relative_l2(got, out_.at("hidden")), 1.5 * own);
}

TEST_P(GoldenT5Test, PositionBucketsMatchTheReference) {
  if (in_.count("rel_pos") == 0) GTEST_SKIP() << "the case has no relative positions";
  const auto got = t5_position_buckets(in_.at("rel_pos"), GetParam().json.at("num_buckets").get<std::int64_t>());
  EXPECT_TRUE(at::equal(got, out_.at("bucket")));
}

TEST_P(GoldenT5Test, WhatStandsInThePaddingDoesNotMatter) {
  const auto c = config(GetParam().json);
  const auto view = view_of(with_prefix(tensors_, "w."));
  const auto& mask = in_.at("mask");
  const auto other = at::where(mask.eq(1), in_.at("ids"), (in_.at("ids") + 17).remainder(c.vocab));
  const auto a = zero_tail(t5_encode(c, view, in_.at("ids"), mask), mask, TailMode::per_sample);
  const auto b = zero_tail(t5_encode(c, view, other, mask), mask, TailMode::per_sample);
  expect_near(a, b, 1e-5, "rows of real tokens");
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenT5Test, ::testing::ValuesIn(golden_cases("encoders", "umt5")),
                         [](const auto& param_info) { return param_info.param.name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenT5Test);

class GoldenClipTest : public ::testing::TestWithParam<GoldenCase> {
 protected:
  static ImageEncoderConfig config(const nlohmann::json& json) {
    ImageEncoderConfig c;
    c.image_size = json.at("image_size").get<std::int64_t>();
    c.patch_size = json.at("patch").get<std::int64_t>();
    c.dim = json.at("dim").get<std::int64_t>();
    c.mlp_dim = c.dim * json.at("mlp_ratio").get<std::int64_t>();
    c.num_heads = json.at("heads").get<std::int64_t>();
    c.num_layers = json.at("layers").get<std::int64_t>();
    c.head_dim_out = json.at("embed_dim").get<std::int64_t>();
    return c;
  }
  /// The images of the case: "a", "b", ...
  std::map<std::string, at::Tensor> images() const {
    std::map<std::string, at::Tensor> out;
    for (const auto& [name, tensor] : with_prefix(tensors_, "in.")) {
      const auto u8 = tensor.unsqueeze(1);
      out[name.substr(0, name.find('.'))] = to_unit_video(u8, u8.size(2), u8.size(3)).select(2, 0);
    }
    return out;
  }
  const TensorMap tensors_ = load_safetensors(GetParam().tensors());
};

TEST_P(GoldenClipTest, ParameterNamesAndShapesEqualTheCheckpoints) {
  std::map<std::string, std::vector<std::int64_t>> want;
  for (const auto& [name, tensor] : with_prefix(tensors_, "w.")) want[name] = tensor.sizes().vec();
  EXPECT_EQ(shapes_of(clip_params(config(GetParam().json))), want);
}

TEST_P(GoldenClipTest, ResizeNormalisationAndFeaturesMatchTheReference) {
  const auto c = config(GetParam().json);
  const auto view = view_of(with_prefix(tensors_, "w."));
  const auto& tolerance = GetParam().json.at("tolerance");
  ASSERT_FALSE(images().empty());
  for (const auto& [name, image] : images()) {
    const auto out = with_prefix(tensors_, "out." + name + ".");
    const auto resized = clip_resize(c, image);
    if (out.count("resized") != 0)
      expect_near(resized, out.at("resized"), tolerance.at("atol_resized").get<double>(), name);
    if (out.count("normalised") != 0) expect_near(clip_normalise(resized), out.at("normalised"), 2e-5, name);
    expect_near(clip_encode(c, view, image), out.at("features"), tolerance.at("atol_features").get<double>(), name);
  }
}

TEST_P(GoldenClipTest, Bf16StaysWithinOneAndAHalfTimesTheReferencesError) {
  const auto c = config(GetParam().json);
  const auto view = view_of(with_prefix(tensors_, "w."), at::kBFloat16);
  for (const auto& [name, image] : images()) {
    const auto out = with_prefix(tensors_, "out." + name + ".");
    if (out.count("features_bf16") == 0) continue;
    const auto own = testing::relative_l2(out.at("features_bf16"), out.at("features"));
    EXPECT_LE(testing::relative_l2(clip_encode(c, view, image), out.at("features")), 1.5 * own) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenClipTest, ::testing::ValuesIn(golden_cases("encoders", "clip")),
                         [](const auto& param_info) { return param_info.param.name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenClipTest);

class GoldenStateDictTest : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(GoldenStateDictTest, FullSizeEncodersHaveTheCheckpointsTensors) {
  const auto& components = GetParam().json.at("components");
  const std::map<std::string, std::vector<ParamSpec>> ours = {{"umt5_xxl", t5_params({})},
                                                              {"clip_vit_h_14", clip_params({})}};
  for (const auto& [name, specs] : ours) {
    if (!components.contains(name)) continue;
    const auto& want = components.at(name);
    EXPECT_EQ(shapes_of(specs), (want.at("shapes").get<std::map<std::string, std::vector<std::int64_t>>>())) << name;
    EXPECT_EQ(count_parameters({"", "", specs}), want.at("numel").get<std::int64_t>()) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenStateDictTest, ::testing::ValuesIn(golden_cases("encoders", "state_dict_keys")),
                         [](const auto& param_info) { return param_info.param.name; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenStateDictTest);

}  // namespace
}  // namespace troupe
