#include "data/video/shared_frames.h"

#include <gtest/gtest.h>

#include "tests/data/video/coded_video.h"

namespace troupe::data {
namespace {

/// What 8 neighbouring anchors from `first` on want with 11 frames three apart.
std::vector<std::int64_t> block_of(std::int64_t first) { return stepped(first, 1, 38); }

class SharedFramesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    encode_texture(path_, 200, {.gop = 100, .b_frames = 2});
    ClipDecoder decoder;
    expected_ = yuv_hashes(decoder, path_, stepped(0, 1, 200)).value();
  }

  void expect_frames(const Result<std::vector<std::string>>& hashes, const std::vector<std::int64_t>& frames) {
    ASSERT_EQ(hashes->size(), frames.size());
    for (std::size_t i = 0; i < frames.size(); ++i)
      EXPECT_EQ((*hashes)[i], expected_[static_cast<std::size_t>(frames[i])]);
  }

  ScratchFolder folder_;
  const std::string path_ = folder_ / "a.mp4";
  std::vector<std::string> expected_;
};

TEST_F(SharedFramesTest, SamplesOfABlockGetThePlainFramesForOneDecoding) {
  ClipDecoder decoder;
  std::int64_t fed = 0;
  for (const std::int64_t anchor : {3, 0, 7, 5, 1, 2, 4, 6}) {
    const auto frames = stepped(20 + anchor, 3, 11);
    expect_frames(yuv_hashes(decoder, path_, frames, block_of(20)), frames);
    if (fed == 0) fed = decoder.counters().samples_fed;
    EXPECT_EQ(decoder.counters().samples_fed, fed);
  }
  EXPECT_EQ(decoder.counters().shared_misses, 11);
  EXPECT_EQ(decoder.counters().shared_hits, 7 * 11);
}

TEST_F(SharedFramesTest, RepeatedFramesAreGivenAsOftenAsTheyAreWanted) {
  ClipDecoder decoder;
  const std::vector<std::int64_t> frames = {30, 30, 31, 57, 57};
  expect_frames(yuv_hashes(decoder, path_, frames, block_of(20)), frames);
  expect_frames(yuv_hashes(decoder, path_, frames, block_of(20)), frames);
}

TEST_F(SharedFramesTest, TheOldestBlocksGoWhenTheBoundIsReached) {
  // codecs pad rows: room for a block or two, not for six
  ClipDecoder decoder({.shared_frame_bytes = 2 * 38 * 64 * 48 * 3});
  for (int round = 0; round < 2; ++round) {
    for (const std::int64_t first : {0, 20, 40, 60, 80, 100}) {
      const auto frames = stepped(first, 3, 11);
      expect_frames(yuv_hashes(decoder, path_, frames, block_of(first)), frames);
    }
  }
  EXPECT_EQ(decoder.counters().shared_hits, 0);  // least recently used: each came back too late
  const auto frames = stepped(101, 3, 11);
  expect_frames(yuv_hashes(decoder, path_, frames, block_of(100)), frames);
  EXPECT_EQ(decoder.counters().shared_hits, 11);
}

TEST_F(SharedFramesTest, ABlockBeyondTheBoundIsDecodedSampleBySample) {
  ClipDecoder decoder({.shared_frame_bytes = 1000}), plain;
  const auto frames = stepped(20, 3, 11);
  expect_frames(yuv_hashes(decoder, path_, frames, block_of(20)), frames);
  expect_frames(yuv_hashes(plain, path_, frames), frames);
  EXPECT_EQ(decoder.counters().samples_fed, plain.counters().samples_fed);
}

TEST_F(SharedFramesTest, DamageThatOnlyANeighbourMeetsDoesNotSpoilASample) {
  damage_frame(path_, 150);
  ClipDecoder decoder;
  const std::vector<std::int64_t> block = stepped(60, 1, 100);  // frames of both groups, the damaged one among them
  const auto whole = stepped(62, 3, 11);
  expect_frames(yuv_hashes(decoder, path_, whole, block), whole);
  EXPECT_FALSE(yuv_hashes(decoder, path_, stepped(123, 3, 11), block));
  expect_frames(yuv_hashes(decoder, path_, whole, block), whole);
}

TEST_F(SharedFramesTest, ABlockMustHoldWhatIsWanted) {
  ClipDecoder decoder;
  EXPECT_EQ(yuv_hashes(decoder, path_, {10, 60}, block_of(20)).error().code(), Errc::invalid_argument);
  EXPECT_EQ(yuv_hashes(decoder, path_, {199}, stepped(190, 1, 11)).error().code(), Errc::invalid_argument);
}

TEST_F(SharedFramesTest, AReplacedFileDoesNotGiveTheOldFrames) {
  ClipDecoder decoder;
  const auto frames = stepped(20, 3, 11);
  expect_frames(yuv_hashes(decoder, path_, frames, block_of(20)), frames);
  std::filesystem::remove(path_);
  encode_texture(path_, 199, {.gop = 7, .crf = 40});
  EXPECT_NE((*yuv_hashes(decoder, path_, frames, block_of(20)))[0], expected_[20]);
}

}  // namespace
}  // namespace troupe::data
