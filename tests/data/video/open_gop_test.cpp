// Groups of pictures that lean on their neighbours: every frame and window equals the file decoded in one go.
#include <gtest/gtest.h>

#include "data/health/decode_check.h"
#include "data/video/decode_plan.h"
#include "data/video/packet_table.h"
#include "tests/data/video/coded_video.h"
#include "tests/data/video/foreign_video.h"

namespace troupe::data {
namespace {

constexpr std::int64_t kCoded = 44;

class OpenGopTest : public ::testing::Test {
 protected:
  /// Encodes and compares all windows, by a decoder that reads the file's table and by one that got it from an index
  /// that believed the container.
  void expect_exact(const ForeignVideo& video) {
    if (!has_encoder(video.encoder.c_str())) GTEST_SKIP() << "this FFmpeg has no " << video.encoder;
    encode_foreign(path_, video);
    const auto whole = decode_in_one_go(path_);
    ASSERT_EQ(whole.size(), static_cast<std::size_t>(video.frames));
    const auto believing = with_container_keys(*read_packet_table(path_, false, soon()).value());
    ClipDecoder own, indexed({.find_table = [&](const std::string&, const FileIdentity&) { return believing; }});
    for (const std::int64_t step : {1, 3}) {
      for (const std::int64_t count : {1, 2, 5}) {
        for (std::int64_t first = 0; first + (count - 1) * step < video.frames; ++first) {
          const auto frames = stepped(first, step, count);
          std::vector<std::string> expected;
          for (const std::int64_t frame : frames) expected.push_back(whole[static_cast<std::size_t>(frame)]);
          for (ClipDecoder* decoder : {&own, &indexed}) {
            const auto got = yuv_hashes(*decoder, path_, frames);
            ASSERT_TRUE(got) << got.error().message();
            EXPECT_EQ(*got, expected) << "frames from " << first << ", step " << step << ", count " << count;
          }
        }
      }
    }
    EXPECT_EQ(yuv_hashes(own, path_, stepped(0, 1, video.frames)).value(), whole);
    work_ = own.counters();
  }

  /// The same table with the key flags of the container.
  std::shared_ptr<const PacketTable> with_container_keys(PacketTable table) const {
    AVFormatContext* raw = nullptr;
    av_must(avformat_open_input(&raw, path_.c_str(), nullptr, nullptr), "opening");
    const AvInput input(raw);
    const AvPacket packet(av_packet_alloc());
    for (VideoSample& sample : table.samples) {
      av_must(av_read_frame(raw, packet.get()), "reading");
      sample.key = (packet->flags & AV_PKT_FLAG_KEY) != 0;
      av_packet_unref(packet.get());
    }
    return std::make_shared<const PacketTable>(std::move(table));
  }

  std::int64_t keys() const {
    const auto table = read_packet_table(path_, false, soon(), true).value();
    return std::count_if(table->samples.begin(), table->samples.end(), [](const VideoSample& s) { return s.key; });
  }

  /// Problems that decoding all `frames` frames finds.
  std::vector<std::string> problems(std::int64_t frames) const {
    std::vector<HealthFinding> findings;
    const DecodeTask task{.camera = "front", .source = {path_, 0, ""}, .frames = frames};
    decode_everything(std::span(&task, 1), 1, findings);
    std::vector<std::string> texts;
    for (const HealthFinding& f : findings) {
      if (f.level == FindingLevel::problem) texts.push_back(f.text);
    }
    return texts;
  }

  ScratchFolder folder_;
  const std::string path_ = folder_ / "a.mp4";
  ClipDecoder::Counters work_;
};

TEST_F(OpenGopTest, H264OpenGroupsEqualTheFileDecodedInOneGo) {
  for (const char* more : {"", ":b-pyramid=none", ":b-pyramid=strict:b-adapt=0", ":ref=6:b-adapt=0:bframes=5"}) {
    SCOPED_TRACE(more);
    expect_exact(
        {.frames = kCoded, .b_frames = 3, .options = {{"x264-params", std::string("open-gop=1:scenecut=0") + more}}});
    // all but the first are recovery points, and they are used
    EXPECT_GE(keys(), 5);
    EXPECT_EQ(work_.retries, 0);
    EXPECT_TRUE(problems(kCoded).empty());
  }
}

TEST_F(OpenGopTest, HevcOpenGroupsEqualTheFileDecodedInOneGo) {
  for (const char* more : {"open-gop=1", "open-gop=0:radl=2:b-adapt=0"}) {
    SCOPED_TRACE(more);
    expect_exact(
        {.encoder = "libx265",
         .frames = kCoded,
         .b_frames = 3,
         .options = {{"x265-params", std::string(more) + ":scenecut=0:keyint=10:min-keyint=10:log-level=none"}}});
    if (IsSkipped()) return;
    EXPECT_GE(keys(), 5);
    EXPECT_EQ(work_.retries, 0);
  }
}

TEST_F(OpenGopTest, Mpeg4GroupsWithLeadingFramesEqualTheFileDecodedInOneGo) {
  expect_exact({.encoder = "mpeg4", .frames = kCoded, .b_frames = 2});
}

TEST_F(OpenGopTest, ARefreshThatTakesManyFramesIsNoKeyFrame) {
  for (const int b_frames :
       {0, 2}) {  // with B-frames the file is scanned; without, its index is believed until it fails
    SCOPED_TRACE(b_frames);
    expect_exact({.frames = kCoded, .b_frames = b_frames, .options = {{"x264-params", "intra-refresh=1:keyint=10"}}});
    EXPECT_EQ(keys(), 1);
    EXPECT_EQ(work_.retries, b_frames == 0 ? 1 : 0);
  }
}

/// Open groups of an encoder; `cut` takes its first group away, so that frames lead the first key.
ForeignVideo open_groups(const std::string& encoder) {
  const bool x264 = encoder == "libx264";
  const char* groups = x264 ? "open-gop=1:scenecut=0:b-adapt=0"
                            : "open-gop=1:scenecut=0:b-adapt=0:keyint=10:min-keyint=10:log-level=none";
  return {
      .encoder = encoder, .frames = kCoded, .b_frames = 3, .options = {{x264 ? "x264-params" : "x265-params", groups}}};
}

class CutOpenGopTest : public OpenGopTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (!has_encoder(GetParam())) GTEST_SKIP() << "this FFmpeg has no " << GetParam();
    video_ = open_groups(GetParam());
    encoded_ = encode(video_);
    write_foreign(path_, video_, encoded_);
    whole_ = decode_in_one_go(path_);
    const auto table = read_packet_table(path_, false, soon()).value();
    while (!table->samples[static_cast<std::size_t>(++video_.cut)].key) {
    }
  }
  ForeignVideo video_;
  /// Encoded once: an encoder need not give the same bits twice.
  EncodedVideo encoded_;
  std::vector<std::string> whole_;
};

INSTANTIATE_TEST_SUITE_P(Codecs, CutOpenGopTest, ::testing::Values("libx264", "libx265"));

TEST_P(CutOpenGopTest, LeadingFramesWithoutTheirReferencesAreFoundWithTheCause) {
  video_.edit_list = false;
  write_foreign(path_, video_, encoded_);
  const auto table = read_packet_table(path_, false, soon()).value();
  const std::int64_t lead = table->samples.front().rank;
  const auto shown = static_cast<std::int64_t>(table->decode_of_rank.size());
  ASSERT_GT(lead, 0);
  const std::string cause = "frame 0 is shown before the first key frame";

  ClipDecoder decoder;
  const auto first = yuv_hashes(decoder, path_, {0});
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code(), Errc::data_loss);
  for (const std::string& part : {path_, cause})
    EXPECT_NE(first.error().message().find(part), std::string::npos) << first.error().message();
  ASSERT_EQ(problems(shown).size(), 1u);
  EXPECT_NE(problems(shown)[0].find(cause), std::string::npos) << problems(shown)[0];
  // what can be decoded is
  const auto rest = yuv_hashes(decoder, path_, stepped(lead, 1, shown - lead));
  ASSERT_TRUE(rest) << rest.error().message();
  EXPECT_EQ(*rest, std::vector<std::string>(whole_.end() - (shown - lead), whole_.end()));
}

TEST_P(CutOpenGopTest, LeadingFramesThatAnEditListHidesSpoilNothing) {
  write_foreign(path_, video_, encoded_);
  const auto table = read_packet_table(path_, false, soon()).value();
  const auto shown = static_cast<std::int64_t>(table->decode_of_rank.size());
  ASSERT_EQ(table->samples.front().rank, 0);
  ASSERT_LT(table->decode_of_rank.size(), table->samples.size());
  ClipDecoder decoder;
  for (std::int64_t first = 0; first < shown; ++first) {
    const std::int64_t count = std::min<std::int64_t>(3, shown - first);
    const auto got = yuv_hashes(decoder, path_, stepped(first, 1, count));
    ASSERT_TRUE(got) << got.error().message();
    const auto from = whole_.end() - (shown - first);
    EXPECT_EQ(*got, std::vector<std::string>(from, from + count)) << first;
  }
  EXPECT_TRUE(problems(shown).empty());
}

}  // namespace
}  // namespace troupe::data
