// Features from the cache are those that the encoders make, bit for bit, and are made once.
#include "workers/encoder/cached_encoder.h"

#include <gtest/gtest.h>

#include "base/fault.h"
#include "tests/support/scratch_folder.h"
#include "tests/workers/encoder/tiny_features.h"

namespace troupe::workers {
namespace {

namespace key = batch_keys;

class CachedEncoderTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { at::set_num_threads(1); }
  JobConfig cached_job() const {
    JobConfig job = tiny_features_job();
    job.data.features.cache = folder_ / "features";
    return job;
  }
  static std::unique_ptr<CachedEncoder> make(const JobConfig& job) { return CachedEncoder::make(job).value(); }
  static void expect_equal(const Batch& want, const Batch& got) {
    ASSERT_EQ(want.size(), got.size());
    for (const auto& [name, tensor] : want) {
      ASSERT_EQ(got.count(name), 1u) << name;
      EXPECT_EQ(tensor.scalar_type(), got.at(name).scalar_type()) << name;
      EXPECT_TRUE(at::equal(tensor, got.at(name))) << name;
    }
  }

  ScratchFolder folder_;
};

TEST_F(CachedEncoderTest, WithoutACacheItIsTheEncoder) {
  const JobConfig job = tiny_features_job();
  const Batch samples = tiny_samples(0, 3);
  auto plain = FeatureEncoder::random(job.model, 7);
  expect_equal((*plain)->encode(samples), make(job)->encode(samples));
}

TEST_F(CachedEncoderTest, EachSampleGetsWhatItGetsAlone) {
  const Batch samples = tiny_samples(0, 3);
  const Batch together = make(cached_job())->encode(samples);
  auto plain = FeatureEncoder::random(cached_job().model, 7);
  for (std::int64_t b = 0; b < 3; ++b) {
    const Batch alone = (*plain)->encode(one_of(samples, b));
    for (const char* name : {key::kClip, key::kCleanLatents}) {
      EXPECT_TRUE(at::equal(alone.at(name), together.at(name).narrow(0, b, 1))) << name;
    }
    // padded to another width, which rounds otherwise
    EXPECT_TRUE(at::allclose(alone.at(key::kContext), together.at(key::kContext).narrow(0, b, 1), 1e-5, 1e-6));
  }
}

TEST_F(CachedEncoderTest, ASecondProcessComputesNothing) {
  const Batch samples = tiny_samples(0, 4);
  const Batch first = make(cached_job())->encode(samples);
  const auto again = make(cached_job());
  expect_equal(first, again->encode(samples));
  EXPECT_EQ(again->cache()->stats().written, 0);
  EXPECT_EQ(again->cache()->stats().misses, 0);
  EXPECT_EQ(again->cache()->stats().hits, 4 + 2 * 4);
}

TEST_F(CachedEncoderTest, ThoseOfOneProcessShareACacheAndGiveTheSameBits) {
  const JobConfig job = cached_job();
  const Batch samples = tiny_samples(0, 2);
  const auto weights = FrozenEncoders::load(job);
  const auto all = CachedEncoder::make_all(job, *weights, 2);
  expect_equal((*all)[0]->encode(samples), (*all)[1]->encode(samples));
  EXPECT_EQ((*all)[0]->cache(), (*all)[1]->cache());
  EXPECT_EQ((*all)[0]->cache()->stats().written, 6);
}

TEST_F(CachedEncoderTest, AnotherModelsEntriesAreNotFound) {
  const Batch samples = tiny_samples(0, 2);
  const auto text_of = [&](const JobConfig& job) {
    const auto encoder = make(job);
    encoder->encode(samples);
    return encoder->cache()->stats();
  };
  EXPECT_EQ(text_of(cached_job()).written, 6);
  JobConfig other = cached_job();
  other.job.seed = 8;  // other text and image encoders; codec dct has no weights
  EXPECT_EQ(text_of(other).written, 4);
  other = cached_job();
  other.model.target_width = 48;  // latents and image features of another canvas
  EXPECT_EQ(text_of(other).written, 4);
  other = cached_job();
  other.precision.encoders = "bf16";
  EXPECT_EQ(text_of(other).written, 4);
  EXPECT_EQ(text_of(cached_job()).written, 0);
}

TEST_F(CachedEncoderTest, Bf16FeaturesKeepTheirType) {
  JobConfig job = cached_job();
  job.precision.encoders = "bf16";
  const Batch samples = tiny_samples(0, 2);
  const Batch first = make(job)->encode(samples);
  EXPECT_EQ(first.at(key::kContext).scalar_type(), at::kBFloat16);
  expect_equal(first, make(job)->encode(samples));
}

TEST_F(CachedEncoderTest, FirstFramesAreKeptWhereTheModelTakesThem) {
  JobConfig job = cached_job();
  job.model.dit.concat_first_frame_latent = true;
  const Batch samples = tiny_samples(0, 2);
  const Batch first = make(job)->encode(samples);
  EXPECT_EQ(first.at(key::kFirstFrame).size(1), 4 + job.model.codec.channels);
  const auto again = make(job);
  expect_equal(first, again->encode(samples));
  EXPECT_EQ(again->cache()->stats().written, 0);
}

TEST_F(CachedEncoderTest, BatchMinCutsAtTheShortestAfterTheCache) {
  JobConfig job = cached_job();
  const Batch samples = tiny_samples(0, 3);
  const Batch whole = make(job)->encode(samples);
  job.model.text_encoder.tail = "batch_min";
  const Batch cut = make(job)->encode(samples);
  const std::int64_t shortest = samples.at(key::kTextMask).sum(1).min().item<std::int64_t>();
  EXPECT_TRUE(at::equal(cut.at(key::kContext).narrow(1, 0, shortest), whole.at(key::kContext).narrow(1, 0, shortest)));
  EXPECT_EQ(cut.at(key::kContext).narrow(1, shortest, 64 - shortest).abs().sum().item<float>(), 0);
  EXPECT_GT(whole.at(key::kContext).narrow(1, shortest, 64 - shortest).abs().sum().item<float>(), 0);
}

TEST_F(CachedEncoderTest, KeepTextKeepsTextAlone) {
  JobConfig job = cached_job();
  job.data.features.keep = "text";
  const Batch samples = tiny_samples(0, 3);
  const auto encoder = make(job);
  const Batch first = encoder->encode(samples);
  EXPECT_EQ(encoder->cache()->stats().written, 3);
  expect_equal(first, make(job)->encode(samples));
}

TEST_F(CachedEncoderTest, ImagesAreFoundByIdentityAndByContent) {
  const auto encoder = make(cached_job());
  const at::Tensor images = tiny_samples(0, 1).at(key::kImages);
  EXPECT_FALSE(encoder->find_images("sample 0"));
  const auto made = encoder->encode_images(images, "sample 0");
  const auto again = make(cached_job());
  const auto by_name = again->find_images("sample 0");
  ASSERT_TRUE(by_name);
  EXPECT_TRUE(at::equal(by_name->latents, made.latents));
  EXPECT_TRUE(at::equal(by_name->clip, made.clip));
  again->encode_images(images);  // without its name: by its pixels
  EXPECT_EQ(again->cache()->stats().written, 0);
  EXPECT_FALSE(again->find_images("sample 1"));
}

TEST_F(CachedEncoderTest, AFullDiskCostsTheEntryNotTheFeature) {
  const auto encoder = make(cached_job());
  const Batch samples = tiny_samples(0, 1);
  ASSERT_TRUE(arm_faults("features.data:enospc:100"));
  const Batch made = encoder->encode(samples);
  ASSERT_TRUE(arm_faults(""));
  ASSERT_TRUE(encoder->store_error());
  EXPECT_EQ(encoder->store_error()->code(), Errc::resource_exhausted);
  expect_equal(made, make(cached_job())->encode(samples));
}

}  // namespace
}  // namespace troupe::workers
