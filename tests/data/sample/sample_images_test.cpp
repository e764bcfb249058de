// Samples of real video files: one decoder for all, shared frames of a block, frames of the codec without a copy.
#include <gtest/gtest.h>

#include <map>

#include "data/toy/toy_dataset.h"
#include "tests/data/sample/sample_test_support.h"
#include "tests/support/scratch_folder.h"

namespace troupe::data {
namespace {

Result<void> no_tokens(const std::string&, std::span<std::int64_t>, std::span<std::int64_t>) { return {}; }

class SampleImagesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_toy_dataset(folder_ / "toy", {.episodes = 3, .frames = 40, .gop = 20}));
    job_.data.sets = {{.path = folder_ / "toy"}};
    job_.data.embodiment.layout = "horizontal";
    job_.data.embodiment.prompt = "none";
    job_.data.embodiment.views = {"front", "side"};
    job_.data.window.chunks = 2;
    job_.data.window.macro_stride = job_.data.window.action_horizon = 8;
    job_.data.window.video_offsets = {0, 2, 4, 6};
    job_.data.image.height = job_.data.image.width = 32;
    job_.data.index.build = "never";
    const auto set = Dataset::open(job_.data, job_.model);
    set_ = *set;
  }
  SampleBuilder builder(ReadClip read = {}) {
    auto made = SampleBuilder::make(Mixture::of(set_, job_.data), job_, no_tokens, std::move(read));
    return std::move(*made);
  }
  static std::vector<std::byte> build(SampleBuilder& from, std::int64_t position) {
    std::vector<std::byte> slot(static_cast<std::size_t>(from.layout().bytes));
    from.build(Split::train, position, slot).value();
    return slot;
  }

  ScratchFolder folder_;
  JobConfig job_;
  std::shared_ptr<const Dataset> set_;
};

TEST_F(SampleImagesTest, PlanesGiveTheBytesOfRgbImages) {
  auto decoder = std::make_shared<ClipDecoder>();
  SampleBuilder planes = builder();
  SampleBuilder rgb =
      builder([decoder](const std::string& path, std::span<const std::int64_t> frames, const ClipDecoder::RgbSink& sink,
                        ClipDecoder::Deadline deadline) { return decoder->read(path, frames, sink, deadline); });
  for (std::int64_t q = 0; q < 12; ++q) EXPECT_EQ(build(planes, q), build(rgb, q)) << q;
}

TEST_F(SampleImagesTest, ABlocksImagesAreDecodedOnce) {
  const auto size = static_cast<std::int64_t>(set_->train().size());
  SampleBuilder shuffled = builder();
  for (std::int64_t q = 0; q < size; ++q) build(shuffled, q);
  job_.data.locality_block = 8;
  job_.data.shuffle_buffer = 32;
  SampleBuilder blocks = builder();
  for (std::int64_t q = 0; q < size; ++q) build(blocks, q);
  const StageTimes apart = shuffled.stage_times(), together = blocks.stage_times();
  EXPECT_EQ(apart.cache_hits, 0);
  EXPECT_EQ(apart.frames_delivered, 2 * 9 * size);
  EXPECT_EQ(together.frames_delivered, apart.frames_delivered);
  EXPECT_GT(together.cache_hits, size) << "seven of eight samples, two cameras each";
  EXPECT_LT(together.frames_decoded, apart.frames_decoded / 2);
  EXPECT_GT(together.decode, 0);
}

TEST_F(SampleImagesTest, SharedImagesDoNotChangeASample) {
  without_augmentation(job_.data.image);
  SampleBuilder shuffled = builder();
  const auto images = [](const SampleBuilder& of, const std::vector<std::byte>& slot) {
    const TensorField& field = of.layout().field("images");
    return std::vector<std::byte>(slot.begin() + field.offset, slot.begin() + field.offset + field.bytes);
  };
  const auto size = static_cast<std::int64_t>(set_->train().size());
  std::map<std::uint64_t, std::vector<std::byte>> of_index;
  for (std::int64_t q = 0; q < size; ++q)
    of_index[shuffled.locate(Split::train, q)->index] = images(shuffled, build(shuffled, q));
  job_.data.locality_block = 8;
  job_.data.shuffle_buffer = 32;
  SampleBuilder blocks = builder();
  for (std::int64_t q = 0; q < size; ++q)
    EXPECT_EQ(images(blocks, build(blocks, q)), of_index.at(blocks.locate(Split::train, q)->index)) << q;
}

}  // namespace
}  // namespace troupe::data
