// Frozen parameters, the feature encoder and its text cache.
#include "model/wan/features.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/threads.h"
#include "model/loss/flow_matching.h"
#include "model/wan/batch_keys.h"
#include "model/wan/clip_encoder.h"
#include "model/wan/t5_encoder.h"
#include "tests/model/wan/tiny_encoders.h"
#include "tests/support/tensor_checks.h"

namespace troupe::model {
namespace {

ModelConfig small_config() {
  ModelConfig config;
  config.text_encoder = testing::tiny_text_encoder();
  config.text_encoder.num_buckets = 32;
  config.text_encoder.max_length = 8;
  config.image_encoder = testing::tiny_image_encoder();
  config.image_encoder.dim = 12;
  config.codec = {.type = "dct", .channels = 6, .stride_t = 4, .stride_hw = 8};
  config.target_height = 16;
  config.target_width = 32;
  return config;
}

/// Two samples of five frames with prompts of three and five tokens.
Batch small_samples() {
  const std::vector<std::uint64_t> positions{0, 1};
  const auto noise = keyed_noise(3, 0, positions, {5, 20, 40, 3});
  const auto images = (noise.sigmoid() * 255).to(at::kByte);
  const auto ids = at::tensor({10, 11, 1, 0, 0, 0, 0, 0, 20, 21, 22, 23, 1, 0, 0, 0}).to(at::kLong).view({2, 8});
  return {{batch_keys::kImages, images},
          {batch_keys::kText, ids},
          {batch_keys::kTextMask, ids.ne(0).to(at::kLong)},
          {batch_keys::kState, at::ones({2, 1, 4})},
          {batch_keys::kHasRealAction, at::ones({2}).to(at::kBool)}};
}

std::unique_ptr<FeatureEncoder> make_encoder(const ModelConfig& config, std::uint64_t seed) {
  return std::move(FeatureEncoder::random(config, seed)).value();
}

TEST(InitialValuesTest, SeedAndNameDecideTheValues) {
  const ParamSpec a{"a", {50}, {Init::Kind::normal, 1}}, b{"b", {50}, {Init::Kind::normal, 1}};
  EXPECT_TRUE(at::equal(initial_tensor(a, 1), initial_tensor(a, 1)));
  EXPECT_FALSE(at::equal(initial_tensor(a, 1), initial_tensor(b, 1)));
  EXPECT_FALSE(at::equal(initial_tensor(a, 1), initial_tensor(a, 2)));
}

TEST(FrozenParamsTest, TheContentHashFollowsEveryValue) {
  const auto specs = t5_params(small_config().text_encoder);
  const auto a = FrozenParams::random(specs, 1, "text_encoder."), b = FrozenParams::random(specs, 1, "text_encoder.");
  EXPECT_EQ(a.content_hash(), b.content_hash());
  EXPECT_EQ(a.content_hash().size(), 32U);
  EXPECT_NE(a.content_hash(), FrozenParams::random(specs, 2, "text_encoder.").content_hash());
  auto tensors = a.view().tensors();
  tensors["norm.weight"] = tensors.at("norm.weight").clone();
  tensors["norm.weight"][0] += 1e-6;
  EXPECT_NE(a.content_hash(), FrozenParams::from_tensors(specs, tensors).value().content_hash());
}

TEST(FrozenParamsTest, AMissingMisshapenOrForeignTensorIsNamed) {
  const auto specs = t5_params(small_config().text_encoder);
  const auto whole = FrozenParams::random(specs, 1, "").view().tensors();
  auto tensors = whole;
  tensors.erase("norm.weight");
  EXPECT_NE(FrozenParams::from_tensors(specs, tensors).error().message().find("norm.weight"), std::string::npos);
  tensors = whole;
  tensors["norm.weight"] = at::ones({3});
  EXPECT_NE(FrozenParams::from_tensors(specs, tensors).error().message().find("[3]"), std::string::npos);
  tensors = whole;
  tensors["decoder.weight"] = at::ones({3});
  EXPECT_NE(FrozenParams::from_tensors(specs, tensors).error().message().find("decoder.weight"), std::string::npos);
}

TEST(FeatureEncoderTest, ASampleBecomesConditioningOfTheRightShapes) {
  const auto encoder = make_encoder(small_config(), 1);
  const auto batch = encoder->encode(small_samples());
  EXPECT_EQ(batch.at(batch_keys::kContext).sizes(), at::IntArrayRef({2, 8, 16}));
  EXPECT_EQ(batch.at(batch_keys::kClip).sizes(), at::IntArrayRef({2, 5, 12}));
  EXPECT_EQ(batch.at(batch_keys::kCleanLatents).sizes(), at::IntArrayRef({2, 6, 2, 2, 4}));
  EXPECT_EQ(batch.count(batch_keys::kFirstFrame), 0U);
  EXPECT_EQ(batch.count(batch_keys::kState), 1U);
  EXPECT_EQ(batch.count(batch_keys::kHasRealAction), 1U);
  for (const auto& [name, tensor] : batch) EXPECT_FALSE(tensor.requires_grad()) << name;
}

TEST(FeatureEncoderTest, TheTailOfEachPromptIsZeroFromItsOwnLength) {
  const auto encoder = make_encoder(small_config(), 1);
  const auto context = encoder->encode(small_samples()).at(batch_keys::kContext);
  EXPECT_TRUE(context[0].narrow(0, 3, 5).eq(0).all().item<bool>());
  EXPECT_TRUE(context[1].narrow(0, 5, 3).eq(0).all().item<bool>());
  EXPECT_GT(context[1].narrow(0, 4, 1).abs().max().item<double>(), 0.0);
}

TEST(FeatureEncoderTest, TextFeaturesEqualTheMaskedEncoderOverTheWholeLength) {
  const auto config = small_config();
  const auto encoder = make_encoder(config, 1);
  const auto samples = small_samples();
  const auto text = FrozenParams::random(t5_params(config.text_encoder), 1, "text_encoder.");
  const auto& mask = samples.at(batch_keys::kTextMask);
  const auto whole = zero_tail(t5_encode(config.text_encoder, text.view(), samples.at(batch_keys::kText), mask), mask,
                               TailMode::per_sample);
  EXPECT_LE(max_difference(encoder->encode_text(samples.at(batch_keys::kText), mask), whole), 1e-5);
}

TEST(FeatureEncoderTest, APromptSeenBeforeComesFromTheCacheWithTheSameBits) {
  const auto encoder = make_encoder(small_config(), 1);
  const auto samples = small_samples();
  const auto first = encoder->encode_text(samples.at(batch_keys::kText), samples.at(batch_keys::kTextMask));
  EXPECT_EQ(encoder->text_cache().misses(), 2);
  const auto again =
      encoder->encode_text(samples.at(batch_keys::kText).flip(0), samples.at(batch_keys::kTextMask).flip(0));
  EXPECT_EQ(encoder->text_cache().hits(), 2);
  EXPECT_TRUE(at::equal(first.flip(0), again));
}

/// Prompts of the given lengths (each ends with 1), padded to the longest, and their mask.
std::pair<at::Tensor, at::Tensor> prompts_of(const std::vector<std::int64_t>& lengths) {
  const auto width = *std::max_element(lengths.begin(), lengths.end());
  auto ids = at::zeros({static_cast<std::int64_t>(lengths.size()), width}, at::TensorOptions().dtype(at::kLong));
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    auto row = ids[static_cast<std::int64_t>(i)].narrow(0, 0, lengths[i]);
    row.copy_((at::arange(lengths[i], ids.options()) * 7 + static_cast<std::int64_t>(i) * 31).remainder(290) + 2);
    row[lengths[i] - 1].fill_(1);
  }
  return {ids, ids.ne(0).to(at::kLong)};
}

TEST(FeatureEncoderTest, PromptsEncodedTogetherEqualPromptsEncodedAlone) {
  const std::vector<std::int64_t> lengths{5, 40, 3, 17, 40, 1, 16, 33, 500};
  const auto [ids, mask] = prompts_of(lengths);
  const auto encoder = make_encoder(small_config(), 1);
  const auto together = encoder->encode_text(ids, mask);
  EXPECT_EQ(encoder->text_cache().misses(), 9);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i);
    const auto alone = make_encoder(small_config(), 1)->encode_text(ids[row].unsqueeze(0), mask[row].unsqueeze(0));
    EXPECT_LE(max_difference(together[row], alone[0]), 2e-6) << "length " << lengths[i];
    EXPECT_TRUE(together[row].narrow(0, lengths[i], ids.size(1) - lengths[i]).eq(0).all().item<bool>());
  }
}

TEST(FeatureEncoderTest, EqualPromptsOfOneCallAreEncodedOnce) {
  const auto [ids, mask] = prompts_of({6, 9});
  const auto encoder = make_encoder(small_config(), 1);
  const auto rows = at::tensor({0, 1, 0, 1, 0}).to(at::kLong);
  const auto out = encoder->encode_text(ids.index_select(0, rows), mask.index_select(0, rows));
  EXPECT_EQ(encoder->text_cache().misses(), 2);
  EXPECT_TRUE(at::equal(out[0], out[2]));
  EXPECT_TRUE(at::equal(out[1], out[3]));
}

TEST(FeatureEncoderTest, ACacheTooSmallForOnePromptChangesNothing) {
  const auto [ids, mask] = prompts_of({6, 9, 30});
  const auto config = small_config();
  FeatureEncoder encoder(config, FrozenParams::random(t5_params(config.text_encoder), 1, "text_encoder."),
                         FrozenParams::random(clip_params(config.image_encoder), 1, "image_encoder.model."),
                         std::move(make_latent_codec(config.codec)).value(), 64);
  EXPECT_TRUE(at::equal(encoder.encode_text(ids, mask), make_encoder(config, 1)->encode_text(ids, mask)));
  EXPECT_EQ(encoder.text_cache().bytes(), 0);
}

TEST(FeatureEncoderTest, TailBatchMinZeroesFromTheShortestPromptOfTheCall) {
  const auto [ids, mask] = prompts_of({6, 9, 4});
  auto config = small_config();
  const auto own = make_encoder(config, 1)->encode_text(ids, mask);
  config.text_encoder.tail = "batch_min";
  const auto cut = make_encoder(config, 1)->encode_text(ids, mask);
  EXPECT_TRUE(at::equal(cut.narrow(1, 0, 4), own.narrow(1, 0, 4)));
  EXPECT_TRUE(cut.narrow(1, 4, 5).eq(0).all().item<bool>());
  EXPECT_GT(own[1].narrow(0, 4, 5).abs().max().item<double>(), 0.0);
}

TEST(FeatureEncoderTest, ImagesEncodedTogetherEqualImagesEncodedAlone) {
  const auto config = small_config();
  const auto encoder = make_encoder(config, 1);
  const std::vector<std::uint64_t> positions{0, 1, 2};
  const auto images = keyed_noise(5, 0, positions, {3, 20, 40}).tanh();
  const auto together = encoder->encode_image(images);
  EXPECT_EQ(together.sizes(), at::IntArrayRef({3, 5, 12}));
  for (std::int64_t i = 0; i < 3; ++i) {
    EXPECT_LE(max_difference(together[i], encoder->encode_image(images.narrow(0, i, 1))[0]), 2e-6);
  }
}

TEST(FeatureEncoderTest, ImagesEncodedTogetherHaveTheBitsOfImagesEncodedAloneOnAnyNumberOfThreads) {
  auto config = small_config();
  config.dit.concat_first_frame_latent = true;
  const auto encoder = make_encoder(config, 4);
  const auto images = small_samples().at(batch_keys::kImages);
  for (const int threads : {1, 2, 3}) {
    kernels::set_num_threads(threads);
    const auto together = encoder->encode_images(images);
    for (std::int64_t b = 0; b < images.size(0); ++b) {
      const auto alone = encoder->encode_images(images.narrow(0, b, 1));
      EXPECT_TRUE(at::equal(together.clip.narrow(0, b, 1), alone.clip)) << threads;
      EXPECT_TRUE(at::equal(together.latents.narrow(0, b, 1), alone.latents)) << threads;
      EXPECT_TRUE(at::equal(together.first_frame.narrow(0, b, 1), alone.first_frame)) << threads;
    }
  }
  kernels::set_num_threads(0);
}

TEST(FeatureEncoderTest, EncodersComputeInTheDtypeOfTheirWeights) {
  const auto config = small_config();
  const auto half = [](const std::vector<ParamSpec>& specs, const char* prefix) {
    auto tensors = FrozenParams::random(specs, 1, prefix).view().tensors();
    for (auto& [name, tensor] : tensors) tensor = tensor.to(at::kBFloat16);
    return FrozenParams::from_tensors(specs, tensors).value();
  };
  FeatureEncoder encoder(config, half(t5_params(config.text_encoder), "text_encoder."),
                         half(clip_params(config.image_encoder), "image_encoder.model."),
                         std::move(make_latent_codec(config.codec)).value());
  const auto got = encoder.encode(small_samples()), want = make_encoder(config, 1)->encode(small_samples());
  for (const char* name : {batch_keys::kContext, batch_keys::kClip}) {
    EXPECT_EQ(got.at(name).scalar_type(), at::kBFloat16) << name;
    EXPECT_LE(testing::relative_l2(got.at(name).to(at::kFloat), want.at(name)), 0.03) << name;
  }
  EXPECT_EQ(got.at(batch_keys::kCleanLatents).scalar_type(), at::kFloat);
}

TEST(FeatureEncoderTest, FirstFrameChannelsOfAFrameEqualThoseOfItsVideo) {
  auto config = small_config();
  config.dit.concat_first_frame_latent = true;
  const auto encoder = make_encoder(config, 1);
  const auto samples = small_samples();
  const auto video = to_unit_video(samples.at(batch_keys::kImages), config.target_height, config.target_width);
  const auto y = encoder->first_frame_channels(video.select(2, 0), video.size(2));
  // encode() computes each sample by itself, which may round a product in another way
  EXPECT_LE(testing::relative_l2(y, encoder->encode(samples).at(batch_keys::kFirstFrame)), 1e-6);
  EXPECT_EQ(encoder->first_frame_channels(video.select(2, 0), 9).size(2), 3);
  EXPECT_THROW(encoder->first_frame_channels(video, 9), c10::Error);
}

TEST(FeatureEncoderTest, FirstFrameChannelsHoldTheMaskAndALatentOfTheFirstFrameAlone) {
  auto config = small_config();
  config.dit.concat_first_frame_latent = true;
  const auto encoder = make_encoder(config, 1);
  auto samples = small_samples();
  const auto y = encoder->encode(samples).at(batch_keys::kFirstFrame);
  EXPECT_EQ(y.sizes(), at::IntArrayRef({2, 10, 2, 2, 4}));
  EXPECT_TRUE(y.narrow(1, 0, 4).select(2, 0).eq(1).all().item<bool>());
  EXPECT_TRUE(y.narrow(1, 0, 4).narrow(2, 1, 1).eq(0).all().item<bool>());
  auto images = samples.at(batch_keys::kImages).clone();
  images.narrow(1, 1, 4).fill_(200);
  samples[batch_keys::kImages] = images;
  EXPECT_TRUE(at::equal(encoder->encode(samples).at(batch_keys::kFirstFrame), y));
}

TEST(FeatureEncoderTest, AMaskWithAHoleIsRefused) {
  const auto encoder = make_encoder(small_config(), 1);
  const auto ids = at::ones({1, 3}, at::TensorOptions().dtype(at::kLong));
  EXPECT_THROW(encoder->encode_text(ids, at::tensor({1, 0, 1}).to(at::kLong).view({1, 3})), c10::Error);
}

TEST(TextFeatureCacheTest, TheLeastRecentlyUsedEntryLeavesFirst) {
  TextFeatureCache cache(3 * 4 * 2);  // three tensors of two floats
  for (const char* key : {"a", "b", "c"}) cache.put(key, at::ones({2}));
  EXPECT_TRUE(cache.find("a").defined());
  cache.put("d", at::ones({2}));
  EXPECT_FALSE(cache.find("b").defined());
  EXPECT_TRUE(cache.find("a").defined());
  EXPECT_TRUE(cache.find("c").defined());
  EXPECT_EQ(cache.bytes(), 24);
  cache.put("large", at::ones({100}));
  EXPECT_FALSE(cache.find("large").defined());
  EXPECT_EQ(cache.bytes(), 24);
}

}  // namespace
}  // namespace troupe::model
