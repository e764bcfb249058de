#include "data/video/video_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "data/video/ffmpeg.h"
#include "data/video/video_encoder.h"
#include "tests/support/scratch_folder.h"

namespace troupe::data {
namespace {

constexpr std::int64_t kClipFrames = 24, kClipWidth = 32, kClipHeight = 16;

/// A video of frames that differ, with or without B-frames.
void encode_with_b_frames(const std::string& path, std::int64_t b_frames) {
  auto encoder = VideoEncoder::open(
      path, {.width = kClipWidth, .height = kClipHeight, .fps = 12, .gop = 8, .crf = 20, .b_frames = b_frames});
  for (std::int64_t f = 0; f < kClipFrames; ++f) {
    std::vector<std::uint8_t> rgb;
    for (std::int64_t p = 0; p < 3 * kClipWidth * kClipHeight; ++p)
      rgb.push_back(static_cast<std::uint8_t>(p * (f + 3)));
    ASSERT_TRUE((*encoder)->write({rgb.data(), kClipHeight, kClipWidth, 3 * kClipWidth}));
  }
  ASSERT_TRUE((*encoder)->finish());
}

/// Copies a video with other times: `shift` gives the ticks of a frame number (12 a second).
void retime(const std::string& from, const std::string& to, const std::function<double(double)>& shift) {
  AVFormatContext* raw = nullptr;
  ASSERT_GE(avformat_open_input(&raw, from.c_str(), nullptr, nullptr), 0);
  const AvInput input(raw);
  AVFormatContext* output = nullptr;
  ASSERT_GE(avformat_alloc_output_context2(&output, nullptr, "mp4", to.c_str()), 0);
  output->avoid_negative_ts = AVFMT_AVOID_NEG_TS_DISABLED;
  AVStream* stream = avformat_new_stream(output, nullptr);
  avcodec_parameters_copy(stream->codecpar, raw->streams[0]->codecpar);
  stream->codecpar->codec_tag = 0;
  stream->time_base = {1, 12000};
  ASSERT_GE(avio_open(&output->pb, to.c_str(), AVIO_FLAG_WRITE), 0);
  ASSERT_GE(avformat_write_header(output, nullptr), 0);
  const AvPacket packet(av_packet_alloc());
  while (av_read_frame(raw, packet.get()) >= 0) {
    const double per_second = 12 * av_q2d(raw->streams[0]->time_base);
    const auto ticks = [&](std::int64_t time) {
      return std::llround(shift(std::round(static_cast<double>(time) * per_second)) / 12 / av_q2d(stream->time_base));
    };
    packet->pts = ticks(packet->pts);
    packet->dts = ticks(packet->dts);
    packet->duration = 0;
    packet->stream_index = 0;
    ASSERT_GE(av_interleaved_write_frame(output, packet.get()), 0);
  }
  ASSERT_GE(av_write_trailer(output), 0);
  avio_closep(&output->pb);
  avformat_free_context(output);
}

VideoInfo probe(const std::string& path) { return probe_video(path).value(); }

TEST(VideoFileTest, AnEncodedVideoHasEvenTimes) {
  const ScratchFolder folder;
  for (const std::int64_t b_frames : {0, 2}) {
    const std::string path = folder / "even.mp4";
    encode_with_b_frames(path, b_frames);
    const VideoInfo info = probe(path);
    EXPECT_EQ(info.frames, kClipFrames);
    EXPECT_NEAR(info.fps, 12, 0.01);
    EXPECT_FALSE(info.uneven) << b_frames;
    EXPECT_EQ(info.hidden, 0);
    EXPECT_EQ(info.first_seconds, 0);
  }
}

TEST(VideoFileTest, AGapOrATrembleIsUneven) {
  const ScratchFolder folder;
  encode_with_b_frames(folder / "even.mp4", 0);
  retime(folder / "even.mp4", folder / "same.mp4", [](double frame) { return frame; });
  EXPECT_FALSE(probe(folder / "same.mp4").uneven);
  retime(folder / "even.mp4", folder / "gap.mp4", [](double frame) { return frame < 10 ? frame : frame + 5; });
  EXPECT_TRUE(probe(folder / "gap.mp4").uneven);
  EXPECT_EQ(probe(folder / "gap.mp4").frames, kClipFrames);
  retime(folder / "even.mp4", folder / "tremble.mp4", [](double frame) { return frame + 0.2 * std::fmod(frame, 2); });
  EXPECT_TRUE(probe(folder / "tremble.mp4").uneven);
  // rounding to the container's ticks is none
  retime(folder / "even.mp4", folder / "rounded.mp4", [](double frame) { return frame * 12 / 11.7; });
  EXPECT_FALSE(probe(folder / "rounded.mp4").uneven);
}

TEST(VideoFileTest, ALateStartIsSeen) {
  const ScratchFolder folder;
  encode_with_b_frames(folder / "even.mp4", 0);
  retime(folder / "even.mp4", folder / "late.mp4", [](double frame) { return frame + 6; });
  const VideoInfo info = probe(folder / "late.mp4");
  EXPECT_NEAR(info.first_seconds, 0.5, 0.01);
  EXPECT_EQ(info.frames, kClipFrames);
}

}  // namespace
}  // namespace troupe::data
