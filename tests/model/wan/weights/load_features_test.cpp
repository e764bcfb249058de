// The frozen encoders of a job, from files or from the seed.
#include "model/wan/weights/load_features.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "model/wan/batch_keys.h"
#include "model/wan/weights/checkpoint_names.h"
#include "tests/model/wan/tiny_encoders.h"
#include "tests/support/tensor_checks.h"
#include "tests/support/weight_files.h"

namespace troupe::model {
namespace {

using ::testing::HasSubstr;
using Tensors = std::map<std::string, at::Tensor>;

constexpr std::uint64_t kSeed = 3;

class LoadFeaturesTest : public ::testing::Test {
 protected:
  static ModelConfig config(const std::string& codec = "dct") {
    ModelConfig c;
    c.text_encoder = testing::tiny_text_encoder();
    c.image_encoder = testing::tiny_image_encoder();
    c.codec = {.type = codec,
               .channels = codec == "wan21" ? 16 : 8,
               .stride_t = 4,
               .stride_hw = 8,
               .encoder_dim = 4,
               .decoder_dim = 4};
    c.target_height = 16;
    c.target_width = 32;
    return c;
  }
  static Batch samples() {
    return {{batch_keys::kImages, at::arange(5 * 16 * 32 * 3).remainder(251).to(at::kByte).view({1, 5, 16, 32, 3})},
            {batch_keys::kText, at::arange(12).view({1, 12}) + 5},
            {batch_keys::kTextMask, at::ones({1, 12}, at::kLong)}};
  }
  static Tensors drawn(const ModelConfig& c, Component component, std::uint64_t seed) {
    Tensors out;
    for (const auto& spec : component_params(c, component)) out[spec.name] = initial_tensor(spec, seed);
    return out;
  }
  std::string store(const std::string& name, const Tensors& tensors) {
    write_safetensors(folder_ / name, tensors);
    return folder_ / name;
  }
  static Batch encode(const ModelConfig& c, at::ScalarType dtype = at::kFloat) {
    auto features = load_features(c, dtype, kSeed);
    return (*features)->encode(samples());
  }

  ScratchFolder folder_;
};

TEST_F(LoadFeaturesTest, WithoutFilesTheyAreThoseOfTheSeed) {
  const auto want = (*FeatureEncoder::random(config(), kSeed))->encode(samples());
  for (const auto& [name, value] : encode(config())) EXPECT_TRUE(at::equal(value, want.at(name))) << name;
}

TEST_F(LoadFeaturesTest, EachPartComesFromItsFile) {
  const auto seeded = encode(config());
  auto c = config();
  c.init.text_encoder = store("t5.safetensors", drawn(c, Component::text_encoder, 50));
  const auto with_text = encode(c);
  EXPECT_FALSE(at::equal(with_text.at(batch_keys::kContext), seeded.at(batch_keys::kContext)));
  EXPECT_TRUE(at::equal(with_text.at(batch_keys::kClip), seeded.at(batch_keys::kClip)));
  c.init.image_encoder = store("clip.safetensors", drawn(c, Component::image_encoder, 51));
  EXPECT_TRUE(check_frozen_files(c));
  EXPECT_FALSE(at::equal(encode(c).at(batch_keys::kClip), seeded.at(batch_keys::kClip)));
}

TEST_F(LoadFeaturesTest, AFullCheckpointHoldsEveryPart) {
  auto c = config("wan21");
  Tensors full;
  for (const auto component : {Component::text_encoder, Component::image_encoder, Component::vae}) {
    for (const auto& [name, tensor] : drawn(c, component, 60)) full[dreamzero_name(component, name)] = tensor;
  }
  auto separate = c;
  separate.init.text_encoder = store("t5.safetensors", drawn(c, Component::text_encoder, 60));
  separate.init.image_encoder = store("clip.safetensors", drawn(c, Component::image_encoder, 60));
  separate.init.vae = store("vae.safetensors", drawn(c, Component::vae, 60));
  c.init.mode = "dreamzero";
  c.init.path = store("model.safetensors", full);
  const auto want = encode(separate);
  for (const auto& [name, value] : encode(c)) EXPECT_TRUE(at::equal(value, want.at(name))) << name;
  EXPECT_EQ(want.at(batch_keys::kCleanLatents).sizes(), (at::IntArrayRef{1, 16, 2, 2, 4}));
}

TEST_F(LoadFeaturesTest, Bf16EncodersStayNearFp32OnesAndTakeHalfTheRoom) {
  for (const char* codec : {"dct", "wan21"}) {
    const auto exact = encode(config(codec)), rounded = encode(config(codec), at::kBFloat16);
    for (const char* name : {batch_keys::kContext, batch_keys::kClip, batch_keys::kCleanLatents}) {
      EXPECT_LE(testing::relative_l2(rounded.at(name), exact.at(name)), 0.05) << codec << " " << name;
    }
  }
  const auto wide = load_features(config(), at::kFloat, kSeed), narrow = load_features(config(), at::kBFloat16, kSeed);
  EXPECT_LT((*narrow)->bytes(), (*wide)->bytes());
}

TEST_F(LoadFeaturesTest, HashesAreThoseOfTheLoadedParts) {
  auto c = config("wan21");
  const auto check = [&](at::ScalarType dtype) {
    const auto hashes = frozen_content_hashes(c, dtype, kSeed);
    ASSERT_EQ(hashes->size(), 3U);
    for (const auto component : {Component::text_encoder, Component::image_encoder, Component::vae}) {
      const auto loaded = load_frozen_component(c, component, dtype, kSeed);
      EXPECT_EQ(hashes->at(component_name(component)), loaded->content_hash()) << component_name(component);
    }
  };
  check(at::kFloat);
  const auto drawn_hashes = *frozen_content_hashes(c, at::kFloat, kSeed);
  EXPECT_NE(drawn_hashes, *frozen_content_hashes(c, at::kFloat, kSeed + 1));
  EXPECT_NE(drawn_hashes, *frozen_content_hashes(c, at::kBFloat16, kSeed));
  c.init.text_encoder = store("t5.safetensors", drawn(c, Component::text_encoder, 50));
  check(at::kFloat);
  check(at::kBFloat16);
  const auto with_file = *frozen_content_hashes(c, at::kFloat, kSeed);
  EXPECT_NE(with_file.at("text_encoder"), drawn_hashes.at("text_encoder"));
  EXPECT_EQ(with_file.at("vae"), drawn_hashes.at("vae"));
}

TEST_F(LoadFeaturesTest, TheHashOfATensorCastInPiecesIsThatOfTheWhole) {
  const auto stored = at::arange((std::int64_t{1} << 22) + 5).to(at::kFloat).div_(7);
  ContentHash pieces, whole;
  pieces.add("w", stored, at::kBFloat16);
  whole.add("w", stored.to(at::kBFloat16), at::kBFloat16);
  EXPECT_EQ(pieces.hex(), whole.hex());
}

TEST_F(LoadFeaturesTest, ACodecWithoutWeightsHasNoHash) {
  const auto hashes = frozen_content_hashes(config(), at::kFloat, kSeed);
  ASSERT_EQ(hashes->size(), 2U);
  EXPECT_NE(hashes->at("text_encoder"), hashes->at("image_encoder"));
}

TEST_F(LoadFeaturesTest, WhatAFileLacksIsNamed) {
  auto c = config();
  auto tensors = drawn(c, Component::text_encoder, 50);
  tensors.erase("norm.weight");
  c.init.text_encoder = store("t5.safetensors", tensors);
  const auto loaded = load_features(c, at::kFloat, kSeed);
  EXPECT_THAT(loaded.error().message(), HasSubstr("norm.weight"));
  EXPECT_THAT(loaded.error().message(), HasSubstr("t5.safetensors"));
  EXPECT_EQ(frozen_content_hashes(c, at::kFloat, kSeed).error().message(), loaded.error().message());
  EXPECT_EQ(check_frozen_files(c).error().message(), loaded.error().message()) << "before a run begins";
  c.init.text_encoder = folder_ / "absent.safetensors";
  EXPECT_EQ(load_features(c, at::kFloat, kSeed).error().code(), Errc::not_found);
}

}  // namespace
}  // namespace troupe::model
