// Encoded samples of a dataset: the same with and without a cache, and nothing decoded that the cache has.
#include "workers/encoder/encoded_sample_builder.h"

#include <gtest/gtest.h>

#include "data/sampling/window.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tiny_dataset.h"
#include "tests/workers/encoder/tiny_features.h"

namespace troupe::workers {
namespace {

Result<void> bytes_as_tokens(const std::string& prompt, std::span<std::int64_t> ids, std::span<std::int64_t> mask) {
  for (std::size_t i = 0; i < std::min(prompt.size(), ids.size()); ++i) {
    ids[i] = static_cast<std::uint8_t>(prompt[i]);
    mask[i] = 1;
  }
  return {};
}

class EncodedSampleBuilderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const JobConfig tiny = tiny_features_job();
    job_ = files_.job();
    const ModelConfig shapes = job_.model;
    job_.model = tiny.model;
    job_.model.dit = shapes.dit;
    job_.model.text_encoder.max_length = shapes.text_encoder.max_length;
    job_.data.image.crop = tiny.data.image.crop;
    job_.data.image.brightness = job_.data.image.contrast = job_.data.image.saturation = job_.data.image.hue = 0;
    job_.data.eval_episodes = {2};
    job_.data.index.build = "never";
    job_.data.features.encode = "encoder";
    job_.data.features.cache = folder_ / "features";
    job_.job.seed = 7;
  }
  EncodedSampleBuilder builder() {
    auto set = Dataset::open(job_.data, job_.model, TinyDataset::options());
    TROUPE_CHECK(set.has_value(), set.error().message());
    mixture_ = Mixture::of(*set, job_.data);
    const auto counted = [this](const std::string& path, std::span<const std::int64_t> frames,
                                const ClipDecoder::RgbSink& sink, ClipDecoder::Deadline deadline) {
      ++clips_;
      return TinyDataset::read_clip(path, frames, sink, deadline);
    };
    auto samples = SampleBuilder::make(mixture_, job_, bytes_as_tokens, counted);
    TROUPE_CHECK(samples.has_value(), samples.error().message());
    auto encoder = CachedEncoder::make(job_);
    TROUPE_CHECK(encoder.has_value(), encoder.error().message());
    auto made = EncodedSampleBuilder::make(mixture_, job_, std::move(*samples), std::move(*encoder));
    TROUPE_CHECK(made.has_value(), made.error().message());
    return std::move(*made);
  }
  std::vector<std::byte> build(EncodedSampleBuilder& builder, Split split, std::int64_t position) {
    std::vector<std::byte> slot(static_cast<std::size_t>(builder.layout().bytes), std::byte{0x33});
    builder.build(split, position, slot).value();
    return slot;
  }

  ScratchFolder folder_;
  TinyDataset files_;
  JobConfig job_;
  std::shared_ptr<const Mixture> mixture_;
  int clips_ = 0;  // of one view
};

TEST_F(EncodedSampleBuilderTest, CachedSamplesHaveTheBytesOfFreshOnesAndAreNotDecoded) {
  const std::string cache = std::exchange(job_.data.features.cache, "");
  std::vector<std::vector<std::byte>> fresh;
  auto plain = builder();
  for (std::int64_t q = 0; q < 4; ++q) fresh.push_back(build(plain, Split::train, q));
  fresh.push_back(build(plain, Split::eval, 0));
  EXPECT_EQ(clips_, 2 * 5);
  for (int round = 0; round < 2; ++round) {
    job_.data.features.cache = cache;
    auto cached = builder();
    clips_ = 0;
    for (std::int64_t q = 0; q < 4; ++q)
      EXPECT_TRUE(build(cached, Split::train, q) == fresh[static_cast<std::size_t>(q)]) << q;
    EXPECT_TRUE(build(cached, Split::eval, 0) == fresh[4]);
    EXPECT_EQ(clips_, round == 0 ? 2 * 5 : 0);
  }
}

TEST_F(EncodedSampleBuilderTest, FillMakesWhatLookMisses) {
  auto encoded = builder();
  const auto before = encoded.look(Split::train, 3);
  EXPECT_FALSE(before->text || before->images);
  EXPECT_EQ(clips_, 0);
  const auto filled = encoded.fill(Split::train, 3);
  EXPECT_FALSE(filled->all());
  EXPECT_TRUE(encoded.look(Split::train, 3)->all());
  EXPECT_EQ(clips_, 2);
  EXPECT_TRUE(encoded.fill(Split::train, 3)->all());
  build(encoded, Split::train, 3);
  EXPECT_EQ(clips_, 2);
}

TEST_F(EncodedSampleBuilderTest, RandomImagesAreNeverCachedAndTextIs) {
  job_.data.image.crop = 0.9;
  auto encoded = builder();
  build(encoded, Split::train, 0);
  EXPECT_FALSE(encoded.look(Split::train, 0)->images);
  EXPECT_TRUE(encoded.look(Split::train, 0)->text);
  build(encoded, Split::eval, 0);
  EXPECT_TRUE(encoded.look(Split::eval, 0)->all()) << "held-out windows are always cropped in the centre";
}

TEST_F(EncodedSampleBuilderTest, KeepTextFillsTextWithoutDecoding) {
  job_.data.features.keep = "text";
  auto encoded = builder();
  EXPECT_FALSE(encoded.look(Split::train, 0)->all());
  EXPECT_TRUE(encoded.fill(Split::train, 0));
  EXPECT_TRUE(encoded.look(Split::train, 0)->all());
  EXPECT_EQ(clips_, 0);
}

TEST_F(EncodedSampleBuilderTest, TheIdentityOfImagesSaysWhatTheyDependOn) {
  auto encoded = builder();
  std::set<std::string> identities;
  std::set<std::pair<std::size_t, std::vector<std::int64_t>>> windows;
  const Dataset& set = *mixture_->datasets()[0];
  for (std::uint64_t q = 0; q < mixture_->train_size(); ++q) {
    const MixtureEntry sample = mixture_->train_entry(7, q);
    identities.insert(image_identity(*mixture_, sample, job_.data.image));
    const auto labels = set.episodes()[sample.entry.episode].row_labels();
    windows.emplace(sample.entry.episode, sample_window(set.spec(), labels, sample.entry.anchor).video);
  }
  EXPECT_EQ(identities.size(), windows.size()) << "anchors of one window share its images, others do not";
  EXPECT_GT(windows.size(), 10u);
  const MixtureEntry first = mixture_->train_entry(7, 0);
  const std::string identity = image_identity(*mixture_, first, job_.data.image);
  EXPECT_EQ(identity, image_identity(*mixture_, first, job_.data.image));
  ImageConfig other = job_.data.image;
  other.crop = 0.9;
  EXPECT_NE(identity, image_identity(*mixture_, first, other));
  other = job_.data.image;
  other.width += 2;
  EXPECT_NE(identity, image_identity(*mixture_, first, other));
}

TEST_F(EncodedSampleBuilderTest, ErrorsNameTheSample) {
  auto encoded = builder();
  std::filesystem::remove(files_.video(2));
  std::vector<std::byte> slot(static_cast<std::size_t>(encoded.layout().bytes));
  const auto built = encoded.build(Split::eval, 0, slot);
  EXPECT_NE(built.error().message().find("evaluation sample 0 (episode 2"), std::string::npos)
      << built.error().message();
}

}  // namespace
}  // namespace troupe::workers
