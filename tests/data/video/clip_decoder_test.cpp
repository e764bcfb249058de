#include "data/video/clip_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/fault.h"
#include "data/video/video_file.h"
#include "tests/data/video/coded_video.h"

namespace troupe::data {
namespace {

constexpr std::int64_t kHeight = 48, kWidth = 64, kFrames = 40;

/// Frame k is gray, of level 40 + 4k, with a bright square that moves, so that every frame tells its number.
std::vector<std::uint8_t> frame(std::int64_t k) {
  std::vector<std::uint8_t> rgb(3 * kHeight * kWidth, static_cast<std::uint8_t>(40 + 4 * k));
  for (std::int64_t y = 4; y < 12; ++y) {
    for (std::int64_t x = k % 40; x < k % 40 + 8; ++x) rgb[static_cast<std::size_t>(3 * (y * kWidth + x))] = 255;
  }
  return rgb;
}

void encode(const std::string& path, std::int64_t gop, std::int64_t frames = kFrames) {
  auto video = VideoEncoder::open(path, {.width = kWidth, .height = kHeight, .fps = 20, .gop = gop});
  for (std::int64_t k = 0; k < frames; ++k) {
    const auto rgb = frame(k);
    ASSERT_TRUE((*video)->write({rgb.data(), kHeight, kWidth, 3 * kWidth}));
  }
  ASSERT_EQ((*video)->finish().value(), frames);
}

std::int64_t number_of(const Rgb8View& p) {
  // away from the square
  std::int64_t sum = 0;
  for (std::int64_t x = 0; x < 3 * p.width; ++x) sum += p.row(40)[x];
  return (sum / (3 * p.width) - 40 + 2) / 4;
}

std::vector<std::int64_t> every(std::int64_t step, std::int64_t count = kFrames) {
  std::vector<std::int64_t> frames;
  for (std::int64_t k = 0; k < count; k += step) frames.push_back(k);
  return frames;
}

class ClipDecoderTest : public ::testing::Test {
 protected:
  /// Numbers of the frames that the decoder gave, in order.
  Result<std::vector<std::int64_t>> numbers(const std::string& path, const std::vector<std::int64_t>& frames,
                                            ClipDecoder::Deadline deadline = soon()) {
    std::vector<std::int64_t> seen;
    TROUPE_TRY(decoder_.read(
        path, frames,
        [&](std::size_t i, const Rgb8View& p) -> Result<void> {
          if (i == 0) seen.clear();  // a retry starts over
          EXPECT_EQ(i, seen.size());
          seen.push_back(number_of(p));
          return {};
        },
        deadline));
    return seen;
  }

  void expect_failure(const std::string& path, Errc code) {
    const auto probed = probe_video(path);
    EXPECT_EQ(probed.error().code(), code) << probed.error().message();
    EXPECT_NE(probed.error().message().find(path), std::string::npos) << probed.error().message();
    const auto read = numbers(path, {0});
    EXPECT_EQ(read.error().code(), code) << read.error().message();
  }

  ScratchFolder folder_;
  ClipDecoder decoder_;
};

TEST_F(ClipDecoderTest, WhatWasEncodedIsProbedAndReadBack) {
  const std::string path = folder_ / "a.mp4";
  encode(path, 12);
  const auto info = probe_video(path);
  EXPECT_EQ(info->width, kWidth);
  EXPECT_EQ(info->height, kHeight);
  EXPECT_EQ(info->frames, kFrames);
  EXPECT_DOUBLE_EQ(info->fps, 20);
  EXPECT_EQ(info->pix_fmt, "yuv420p");
  EXPECT_FALSE(info->has_b_frames);
  EXPECT_EQ(*numbers(path, every(1)), every(1));
}

TEST_F(ClipDecoderTest, AnySelectionGivesThoseFramesAndRepeatsAreGivenAgain) {
  const std::string path = folder_ / "a.mp4";
  for (const std::int64_t gop : {1, 2, 7, 100}) {
    SCOPED_TRACE(gop);
    encode(path, gop);
    for (const auto& frames :
         {every(3), std::vector<std::int64_t>{0, 0, 5, 39, 39}, std::vector<std::int64_t>{38}, every(11)}) {
      EXPECT_EQ(*numbers(path, frames), frames);
    }
  }
}

TEST_F(ClipDecoderTest, GroupsOfTwoCostOnlyKeysAndTargets) {
  const std::string path = folder_ / "a.mp4";
  encode(path, 2);
  ASSERT_TRUE(numbers(path, {0, 3, 6, 9}));
  EXPECT_EQ(decoder_.counters().samples_fed, 6);  // 0; 2 and 3; 6; 8 and 9
}

TEST_F(ClipDecoderTest, FilesOfOneKindShareACodecAndTablesAreKept) {
  encode(folder_ / "a.mp4", 12);
  encode(folder_ / "b.mp4", 12, 30);
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(numbers(folder_ / "a.mp4", {5, 20}));
    ASSERT_TRUE(numbers(folder_ / "b.mp4", {5, 20}));
  }
  EXPECT_EQ(decoder_.counters().contexts_opened, 1);
  EXPECT_EQ(decoder_.counters().tables_read, 2);
  EXPECT_EQ(decoder_.counters().retries, 0);
}

TEST_F(ClipDecoderTest, AReplacedFileIsReadAnew) {
  const std::string path = folder_ / "a.mp4";
  encode(path, 12);
  ASSERT_TRUE(numbers(path, {39}));
  std::filesystem::remove(path);
  encode(path, 12, 20);
  EXPECT_EQ(numbers(path, {39}).error().code(), Errc::invalid_argument);
  EXPECT_EQ(decoder_.counters().tables_read, 2);
}

TEST_F(ClipDecoderTest, AMissingFileAndADanglingLinkAreNotFound) {
  expect_failure(folder_ / "absent.mp4", Errc::not_found);
  std::filesystem::create_symlink(folder_ / "nowhere.mp4", folder_ / "link.mp4");
  expect_failure(folder_ / "link.mp4", Errc::not_found);
  EXPECT_NE(probe_video(folder_ / "link.mp4").error().message().find("a link whose"), std::string::npos);
}

TEST_F(ClipDecoderTest, AFolderIsNotAVideo) {
  std::filesystem::create_directory(folder_ / "d.mp4");
  expect_failure(folder_ / "d.mp4", Errc::invalid_argument);
}

TEST_F(ClipDecoderTest, ZeroBytesAndForeignBytesAreDataLoss) {
  write_bytes(folder_ / "empty.mp4", {});
  expect_failure(folder_ / "empty.mp4", Errc::data_loss);
  const std::vector<char> text(5000, 'x');
  write_bytes(folder_ / "text.mp4", text);
  expect_failure(folder_ / "text.mp4", Errc::data_loss);
}

TEST_F(ClipDecoderTest, AMissingIndexIsNamedMoov) {
  encode(folder_ / "a.mp4", 12);
  auto bytes = text_of(folder_ / "a.mp4");
  const std::string name = "moov";
  const auto at = std::search(bytes.begin(), bytes.end(), name.begin(), name.end());
  ASSERT_NE(at, bytes.end());
  std::copy_n("none", 4, at);
  write_bytes(folder_ / "b.mp4", bytes);
  expect_failure(folder_ / "b.mp4", Errc::data_loss);
  EXPECT_NE(probe_video(folder_ / "b.mp4").error().message().find("moov"), std::string::npos);
}

TEST_F(ClipDecoderTest, AFileCutShortIsFoundBeforeAnythingIsDecoded) {
  encode(folder_ / "a.mp4", 12);
  auto bytes = text_of(folder_ / "a.mp4");
  bytes.resize(bytes.size() - 20);
  write_bytes(folder_ / "b.mp4", bytes);
  expect_failure(folder_ / "b.mp4", Errc::data_loss);
  EXPECT_NE(probe_video(folder_ / "b.mp4").error().message().find("truncated"), std::string::npos);
  EXPECT_EQ(decoder_.counters().samples_fed, 0);
}

TEST_F(ClipDecoderTest, ADamagedFrameIsAnErrorAfterOneRetryAndTheDecoderStaysUsable) {
  encode(folder_ / "good.mp4", 12);
  std::filesystem::copy_file(folder_ / "good.mp4", folder_ / "bad.mp4");
  damage_frame(folder_ / "bad.mp4", 15);
  ASSERT_TRUE(numbers(folder_ / "good.mp4", {10}));

  // also when the damaged frame itself is not asked for: frame 18 refers to it
  for (const std::int64_t frame : {15, 18}) {
    const auto before = decoder_.counters().retries;
    const auto read = numbers(folder_ / "bad.mp4", {frame});
    EXPECT_EQ(read.error().code(), Errc::data_loss);
    EXPECT_NE(read.error().message().find("bad.mp4"), std::string::npos);
    EXPECT_EQ(decoder_.counters().retries, before + 1);
  }
  // groups that do not contain it are whole
  EXPECT_EQ(numbers(folder_ / "bad.mp4", {3, 30}).value(), (std::vector<std::int64_t>{3, 30}));
  EXPECT_EQ(numbers(folder_ / "good.mp4", {15, 18}).value(), (std::vector<std::int64_t>{15, 18}));
}

TEST_F(ClipDecoderTest, APassedDeadlineStopsTheReadWithoutARetry) {
  encode(folder_ / "a.mp4", 12);
  const auto past = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  EXPECT_EQ(numbers(folder_ / "a.mp4", {3}, past).error().code(), Errc::deadline_exceeded);  // while opening
  ASSERT_TRUE(numbers(folder_ / "a.mp4", {3}));
  EXPECT_EQ(numbers(folder_ / "a.mp4", {3}, past).error().code(), Errc::deadline_exceeded);  // while decoding
  EXPECT_EQ(decoder_.counters().retries, 0);
}

TEST_F(ClipDecoderTest, AnErrorOfTheSinkComesBackAsIs) {
  encode(folder_ / "a.mp4", 12);
  int calls = 0;
  const auto read = decoder_.read(
      folder_ / "a.mp4", every(1),
      [&](std::size_t, const Rgb8View&) -> Result<void> {
        if (++calls == 3) return Error{Errc::data_loss, "enough"};
        return {};
      },
      soon());
  EXPECT_EQ(read.error().message(), "enough");
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(decoder_.counters().retries, 0);
  EXPECT_EQ(numbers(folder_ / "a.mp4", {7}).value(), (std::vector<std::int64_t>{7}));
}

TEST_F(ClipDecoderTest, WantedFramesMustBeAscendingAndInTheFile) {
  encode(folder_ / "a.mp4", 12);
  EXPECT_EQ(numbers(folder_ / "a.mp4", {3, 2}).error().code(), Errc::invalid_argument);
  EXPECT_EQ(numbers(folder_ / "a.mp4", {kFrames}).error().code(), Errc::invalid_argument);
  EXPECT_EQ(numbers(folder_ / "a.mp4", {-1}).error().code(), Errc::invalid_argument);
  EXPECT_TRUE(numbers(folder_ / "a.mp4", {}));
}

TEST_F(ClipDecoderTest, AScriptedFaultFailsTheNamedFileOnly) {
  encode(folder_ / "a.mp4", 12);
  encode(folder_ / "b.mp4", 12);
  ASSERT_TRUE(arm_faults("decode@b:fail"));
  EXPECT_TRUE(numbers(folder_ / "a.mp4", {1}));
  EXPECT_FALSE(numbers(folder_ / "b.mp4", {1}));
  EXPECT_TRUE(numbers(folder_ / "b.mp4", {1}));
  ASSERT_TRUE(arm_faults(""));
}

TEST_F(ClipDecoderTest, Av1IsReadInAnyOrderOfGroups) {
  const auto path = shared_video("g1-bottle episode 0");
  if (path.empty()) GTEST_SKIP() << "no g1-bottle in " << shared_data();
  const auto info = probe_video(path.string());
  EXPECT_EQ(info->codec, "av1");
  EXPECT_EQ(info->frames, 221);
  std::vector<std::int64_t> first(30);
  std::iota(first.begin(), first.end(), 0);
  std::vector<std::string> hashes(30);
  const auto keep = [&](std::size_t i, const Rgb8View& p) -> Result<void> {
    return hashes[i] = xxh64_hex(packed(p)), Result<void>();
  };
  ASSERT_TRUE(decoder_.read(path.string(), first, keep, soon()));
  for (const std::int64_t start : {28, 1, 14}) {
    const std::int64_t frames[] = {start, start + 1};
    decoder_
        .read(
            path.string(), frames,
            [&](std::size_t i, const Rgb8View& p) -> Result<void> {
              EXPECT_EQ(xxh64_hex(packed(p)), hashes[static_cast<std::size_t>(frames[i])]) << frames[i];
              return {};
            },
            soon())
        .value();
  }
  EXPECT_EQ(decoder_.counters().contexts_opened, 1);
}

TEST_F(ClipDecoderTest, OneFrameTooManyOrTooFewIsAcceptedAtTheTail) {
  EXPECT_EQ(reconcile_frame_count("x.mp4", 100, 101).value(), 100);
  EXPECT_EQ(reconcile_frame_count("x.mp4", 100, 99).value(), 99);
  EXPECT_EQ(reconcile_frame_count("x.mp4", 100, 98).error().code(), Errc::data_loss);
}

TEST_F(ClipDecoderTest, TheEncoderRefusesOddSizesAndForeignFrames) {
  EXPECT_EQ(VideoEncoder::open(folder_ / "o.mp4", {.width = 63, .height = 48}).error().code(), Errc::invalid_argument);
  EXPECT_EQ(VideoEncoder::open(folder_ / "no/such/o.mp4", {.width = 64, .height = 48}).error().code(),
            Errc::failed_precondition);
  auto video = VideoEncoder::open(folder_ / "o.mp4", {.width = 64, .height = 64});
  const auto rgb = frame(0);
  EXPECT_EQ((*video)->write({rgb.data(), kHeight, kWidth, 3 * kWidth}).error().code(), Errc::invalid_argument);
}

}  // namespace
}  // namespace troupe::data
