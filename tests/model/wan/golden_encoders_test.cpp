// The frozen encoders and the pixels before them against the reference's own numbers (golden/encoders).
#include <gtest/gtest.h>

#include <algorithm>

#include "model/wan/clip_encoder.h"
#include "model/wan/dit_units.h"
#include "model/wan/features.h"
#include "model/wan/t5_encoder.h"
#include "tests/model/wan/golden_constructor.h"
#include "tests/support/golden_folder.h"
#include "tests/support/safetensors_file.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

TEST(GoldenEncodersFolderTest, EveryKindIsTestedOrNamed) {
  testing::expect_known_kinds("encoders", {"umt5", "clip", "preproc", "sentencepiece", "state_dict_keys"},
                              {"vae", "vae_norm_constants", "text_clean", "text_char_map", "prompts"});
}

ParamView view_of(const TensorMap& weights, at::ScalarType dtype = at::kFloat) {
  ParamView view;
  for (const auto& [name, tensor] : weights) view.set(name, tensor.to(dtype));
  return view;
}

/// Shapes of the case's weights.
testing::ParamShapes weight_shapes(const TensorMap& tensors) {
  testing::ParamShapes out;
  for (const auto& [name, tensor] : with_prefix(tensors, "w.")) out[name] = tensor.sizes().vec();
  return out;
}

/// The case's own tolerance of `name`, or `otherwise`.
double tolerance_of(const GoldenCase& c, const std::string& name, double otherwise) {
  return c.json.value("tolerance", nlohmann::json::object()).value(name, otherwise);
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
  /// Whether the case holds every one of the tensors ("in.ids", "out.hidden").
  bool has(std::initializer_list<const char*> names) const {
    return std::all_of(names.begin(), names.end(), [this](const char* name) { return tensors_.count(name) != 0; });
  }
  double tolerance(const std::string& name, double otherwise) const {
    return tolerance_of(GetParam(), name, otherwise);
  }

  const TensorMap tensors_ = load_safetensors(GetParam().tensors());
  const TensorMap in_ = with_prefix(tensors_, "in."), out_ = with_prefix(tensors_, "out.");
};

TEST_P(GoldenT5Test, TheCaseHasOutputsToCompare) {
  EXPECT_TRUE((has({"in.ids", "in.mask"}) && (out_.count("hidden") + out_.count("encode_prompt_batch_min") +
                                              out_.count("encode_prompt_per_sample")) != 0) ||
              has({"in.rel_pos", "out.bucket"}) || has({"in.gelu_x", "out.gelu_y"}) || has({"out.pos_bias_block0"}));
}

TEST_P(GoldenT5Test, ParameterNamesAndShapesEqualTheCheckpoints) {
  EXPECT_EQ(shapes_of(t5_params(config(GetParam().json))), weight_shapes(tensors_));
}

TEST_P(GoldenT5Test, HiddenStatesMatchTheReference) {
  if (!has({"in.ids", "in.mask", "out.hidden"})) GTEST_SKIP() << "the case has no hidden states";
  const auto c = config(GetParam().json);
  const auto hidden = t5_encode(c, view_of(with_prefix(tensors_, "w.")), in_.at("ids"), in_.at("mask"));
  expect_near(hidden, out_.at("hidden"), tolerance("atol_hidden", 5e-5), "hidden");
}

TEST_P(GoldenT5Test, ZeroedTailsMatchTheReference) {
  if (!has({"in.ids", "in.mask"})) GTEST_SKIP() << "the case has no tokens";
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
  if (!has({"in.ids", "in.mask"})) GTEST_SKIP() << "the case has no tokens";
  ModelConfig model;
  model.text_encoder = config(GetParam().json);
  model.image_encoder = {
      .image_size = 28, .patch_size = 14, .dim = 8, .mlp_dim = 8, .num_heads = 2, .num_layers = 1, .head_dim_out = 8};
  model.codec = {.type = "dct", .channels = 6, .stride_t = 4, .stride_hw = 8};
  std::map<std::string, at::Tensor> weights;
  for (const auto& [name, tensor] : with_prefix(tensors_, "w.")) weights[name] = tensor;
  for (const auto& [name, tail] :
       {std::pair("encode_prompt_batch_min", "batch_min"), std::pair("encode_prompt_per_sample", "per_sample")}) {
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
  if (!has({"in.gelu_x", "out.gelu_y"})) GTEST_SKIP() << "the case has no values of gelu";
  const auto& x = in_.at("gelu_x");
  expect_near(t5_gelu(x), out_.at("gelu_y"), tolerance("gelu", 1e-6), "gelu");
  // in bf16 the rounding of every operation stays within a few steps of 2^-8
  const auto half = t5_gelu(x.to(at::kBFloat16)).to(at::kFloat), want = t5_gelu(x.to(at::kBFloat16).to(at::kFloat));
  EXPECT_TRUE(((half - want).abs() <= want.abs() * 0.03 + 0.01).all().item<bool>());
}

TEST_P(GoldenT5Test, Bf16StaysWithinOneAndAHalfTimesTheReferencesError) {
  if (!has({"in.ids", "in.mask", "out.hidden", "out.hidden_bf16"})) GTEST_SKIP() << "the case has no bf16 output";
  const auto c = config(GetParam().json);
  const auto got = t5_encode(c, view_of(with_prefix(tensors_, "w."), at::kBFloat16), in_.at("ids"), in_.at("mask"));
  const auto own = testing::relative_l2(out_.at("hidden_bf16"), out_.at("hidden"));
  EXPECT_LE(testing::relative_l2(got, out_.at("hidden")), 1.5 * own);
}

TEST_P(GoldenT5Test, PositionBucketsMatchTheReference) {
  if (!has({"in.rel_pos", "out.bucket"})) GTEST_SKIP() << "the case has no relative positions";
  const auto got = t5_position_buckets(in_.at("rel_pos"), GetParam().json.at("num_buckets").get<std::int64_t>());
  EXPECT_TRUE(at::equal(got, out_.at("bucket")));
}

/// The bias of block 0, [1, heads, L, L], is its table read at the buckets of key - query.
TEST_P(GoldenT5Test, BucketsAndTableGiveTheReferencesPositionBias) {
  if (!has({"out.pos_bias_block0"})) GTEST_SKIP() << "the case has no position bias";
  const auto& want = out_.at("pos_bias_block0");
  const auto place = at::arange(want.size(2));
  const auto relative = place.unsqueeze(0) - place.unsqueeze(1);
  const auto buckets = t5_position_buckets(relative, config(GetParam().json).num_buckets);
  const auto got = tensors_.at("w.blocks.0.pos_embedding.embedding.weight").index({buckets}).permute({2, 0, 1});
  expect_near(got.unsqueeze(0), want, 0, "pos_bias_block0");
}

TEST_P(GoldenT5Test, WhatStandsInThePaddingDoesNotMatter) {
  if (!has({"in.ids", "in.mask"})) GTEST_SKIP() << "the case has no tokens";
  const auto c = config(GetParam().json);
  const auto view = view_of(with_prefix(tensors_, "w."));
  const auto& mask = in_.at("mask");
  const auto other = at::where(mask.eq(1), in_.at("ids"), (in_.at("ids") + 17).remainder(c.vocab));
  const auto a = zero_tail(t5_encode(c, view, in_.at("ids"), mask), mask, TailMode::per_sample);
  const auto b = zero_tail(t5_encode(c, view, other, mask), mask, TailMode::per_sample);
  expect_near(a, b, 1e-5, "rows of real tokens");
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenT5Test, ::testing::ValuesIn(golden_cases("encoders", "umt5")), golden_case_name);
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
  EXPECT_EQ(shapes_of(clip_params(config(GetParam().json))), weight_shapes(tensors_));
}

TEST_P(GoldenClipTest, ResizeNormalisationAndFeaturesMatchTheReference) {
  const auto c = config(GetParam().json);
  const auto view = view_of(with_prefix(tensors_, "w."));
  const double features = tolerance_of(GetParam(), "atol_features", 5e-5);
  auto no_blocks = c;  // the last block never runs
  no_blocks.num_layers = 1;
  int compared = 0;
  for (const auto& [name, image] : images()) {
    const std::string prefix = name + ".";
    const auto out = with_prefix(tensors_, "out." + prefix);
    const auto compare = [&](const char* stage, const at::Tensor& got, double tolerance) {
      if (out.count(stage) == 0) return;
      expect_near(got, out.at(stage), tolerance, prefix + stage);
      ++compared;
    };
    const auto resized = clip_resize(c, image);
    compare("resized", resized, tolerance_of(GetParam(), "atol_resized", 5e-6));
    compare("normalised", clip_normalise(resized), 2e-5);
    compare("pre_norm", clip_encode(no_blocks, view, image), features);
    compare("features", clip_encode(c, view, image), features);
  }
  EXPECT_GT(compared, 0) << "the case has no output to compare";
}

TEST_P(GoldenClipTest, Bf16StaysWithinOneAndAHalfTimesTheReferencesError) {
  const auto c = config(GetParam().json);
  const auto view = view_of(with_prefix(tensors_, "w."), at::kBFloat16);
  for (const auto& [name, image] : images()) {
    const auto out = with_prefix(tensors_, "out." + name + ".");
    if (out.count("features_bf16") == 0 || out.count("features") == 0) continue;
    const auto own = testing::relative_l2(out.at("features_bf16"), out.at("features"));
    EXPECT_LE(testing::relative_l2(clip_encode(c, view, image), out.at("features")), 1.5 * own) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenClipTest, ::testing::ValuesIn(golden_cases("encoders", "clip")),
                         golden_case_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenClipTest);

class GoldenStateDictTest : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(GoldenStateDictTest, FullSizeEncodersHaveTheCheckpointsTensors) {
  const auto& components = GetParam().json.at("components");
  const std::map<std::string, std::vector<ParamSpec>> ours = {{"umt5_xxl", t5_params({})},
                                                              {"clip_vit_h_14", clip_params({})}};
  for (const auto& [name, specs] : ours) {
    if (!components.contains(name)) continue;
    const auto& want = components.at(name);
    EXPECT_EQ(shapes_of(specs), want.at("shapes").get<testing::ParamShapes>()) << name;
    EXPECT_EQ(count_parameters({"", "", specs}), want.at("numel").get<std::int64_t>()) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenStateDictTest, ::testing::ValuesIn(golden_cases("encoders", "state_dict_keys")),
                         golden_case_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenStateDictTest);

}  // namespace
}  // namespace troupe::model
