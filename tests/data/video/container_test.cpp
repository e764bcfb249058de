// Containers against what libavformat says of them: index last, edit lists, cut files.
#include <gtest/gtest.h>

#include <algorithm>

#include "data/video/ffmpeg.h"
#include "data/video/packet_table.h"
#include "data/video/video_file.h"
#include "tests/data/video/coded_video.h"
#include "tests/data/video/foreign_video.h"

namespace troupe::data {
namespace {

std::size_t place_of(const std::string& bytes, const std::string& box) {
  const auto at = std::search(bytes.begin(), bytes.end(), box.begin(), box.end());
  EXPECT_NE(at, bytes.end()) << box;
  return static_cast<std::size_t>(at - bytes.begin());
}

void put_u32(std::string& bytes, std::size_t at, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) bytes[at + static_cast<std::size_t>(i)] = static_cast<char>(value >> (24 - 8 * i));
}
std::uint32_t get_u32(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<std::uint8_t>(bytes[at + i]);
  return value;
}

const ForeignVideo kHevc{.encoder = "libx265", .options = {{"x265-params", "log-level=none"}}};
const ForeignVideo kAv1{.encoder = "libaom-av1", .frames = 12, .gop = 4, .options = {{"cpu-used", "8"}}};

class ContainerTest : public ::testing::Test {
 protected:
  /// Offsets, sizes, key flags and order of presentation equal what the demuxer gives packet by packet.
  void expect_as_demuxed(const std::string& path) {
    const auto table = read_packet_table(path, false, soon());
    AVFormatContext* raw = nullptr;
    ASSERT_GE(avformat_open_input(&raw, path.c_str(), nullptr, nullptr), 0);
    const AvInput input(raw);
    const AvPacket packet(av_packet_alloc());
    std::vector<std::pair<std::int64_t, std::int32_t>> shown;  // pts, place
    std::int32_t count = 0;
    for (; av_read_frame(raw, packet.get()) >= 0; av_packet_unref(packet.get()), ++count) {
      ASSERT_LT(static_cast<std::size_t>(count), (*table)->samples.size());
      const VideoSample& sample = (*table)->samples[static_cast<std::size_t>(count)];
      EXPECT_EQ(sample.offset, packet->pos);
      EXPECT_EQ(sample.size, packet->size);
      EXPECT_EQ(sample.key, (packet->flags & AV_PKT_FLAG_KEY) != 0) << count;
      if ((packet->flags & AV_PKT_FLAG_DISCARD) == 0)
        shown.emplace_back(packet->pts, count);
      else
        EXPECT_EQ(sample.rank, -1);
    }
    EXPECT_EQ(static_cast<std::size_t>(count), (*table)->samples.size());
    std::stable_sort(shown.begin(), shown.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    ASSERT_EQ(shown.size(), (*table)->decode_of_rank.size());
    for (std::size_t rank = 0; rank < shown.size(); ++rank)
      EXPECT_EQ((*table)->decode_of_rank[rank], shown[rank].second);
  }

  ScratchFolder folder_;
};

TEST_F(ContainerTest, TablesAreThoseOfTheDemuxer) {
  for (const std::int64_t gop : {1, 2, 12, 100}) {
    for (const std::int64_t b_frames : {0, 3}) {
      SCOPED_TRACE(::testing::Message() << "gop " << gop << ", B-frames " << b_frames);
      const std::string path = folder_ / "a.mp4";
      encode_texture(path, 60, {.gop = gop, .b_frames = b_frames});
      expect_as_demuxed(path);
    }
  }
}

TEST_F(ContainerTest, AnIndexBehindTheFramesIsFound) {
  encode_texture(folder_ / "first.mp4", 30, {.gop = 10});
  encode_texture(folder_ / "last.mp4", 30, {.gop = 10, .moov_first = false});
  const auto first = text_of(folder_ / "first.mp4"), last = text_of(folder_ / "last.mp4");
  EXPECT_LT(place_of(first, "moov"), place_of(first, "mdat"));
  EXPECT_GT(place_of(last, "moov"), place_of(last, "mdat"));
  expect_as_demuxed(folder_ / "last.mp4");
  ClipDecoder decoder;
  const auto frames = stepped(1, 3, 9);
  EXPECT_EQ(yuv_hashes(decoder, folder_ / "last.mp4", frames).value(),
            yuv_hashes(decoder, folder_ / "first.mp4", frames).value());
}

TEST_F(ContainerTest, FramesThatAnEditListHidesGetNoNumber) {
  const std::string whole = folder_ / "whole.mp4", cut = folder_ / "cut.mp4";
  encode_texture(whole, 40, {.gop = 40});
  auto bytes = text_of(whole);
  // elst: version and flags, count, then per entry: duration in movie ticks, media time in track ticks, rate
  const std::size_t elst = place_of(bytes, "elst");
  ASSERT_EQ(get_u32(bytes, elst + 8), 1u);
  const std::size_t mdhd = place_of(bytes, "mdhd");
  const std::uint32_t ticks = get_u32(bytes, mdhd + 16) / 20;  // per frame at 20 frames a second
  ASSERT_GT(ticks, 0u);
  put_u32(bytes, elst + 16, get_u32(bytes, elst + 16) + 7 * ticks);
  write_bytes(cut, bytes);

  expect_as_demuxed(cut);
  const auto table = read_packet_table(cut, false, soon()).value();
  EXPECT_EQ(table->samples.size(), 40u);
  ASSERT_EQ(table->decode_of_rank.size(), 33u);
  ClipDecoder decoder;
  const auto all = yuv_hashes(decoder, whole, stepped(0, 1, 40)).value();
  const auto shown = yuv_hashes(decoder, cut, stepped(0, 1, 33)).value();
  EXPECT_EQ(shown, std::vector<std::string>(all.begin() + 7, all.end()));
}

TEST_F(ContainerTest, FramesBeyondTheEndOfTheFileAreFoundBeforeDecoding) {
  const std::string path = folder_ / "a.mp4";
  encode_texture(path, 40, {.gop = 10});
  const auto bytes = text_of(path);
  const std::size_t mdat = place_of(bytes, "mdat");
  for (const std::size_t kept : {mdat + 5, mdat + 500, (mdat + bytes.size()) / 2, bytes.size() - 1}) {
    SCOPED_TRACE(kept);
    write_bytes(folder_ / "cut.mp4", std::span(bytes).first(kept));
    const auto table = read_packet_table(folder_ / "cut.mp4", false, soon());
    EXPECT_EQ(table.error().code(), Errc::data_loss);
    EXPECT_NE(table.error().message().find("truncated"), std::string::npos) << table.error().message();
  }
}

TEST_F(ContainerTest, AnIndexThatIsOffIsFoundWithoutDecoding) {
  for (const ForeignVideo& video : {ForeignVideo{}, kHevc, kAv1}) {
    if (!has_encoder(video.encoder.c_str())) continue;
    SCOPED_TRACE(video.encoder);
    const std::string path = folder_ / "a.mp4";
    encode_foreign(path, video);
    const std::string whole = text_of(path);
    ASSERT_TRUE(read_packet_table(path, true, soon()));
    // stco: version and flags, count, offsets; stsz: version and flags, size of all, count, sizes
    const std::size_t stco = place_of(whole, "stco") + 12, stsz = place_of(whole, "stsz") + 16 + 4 * 5;
    for (const auto& [at, more] : {std::pair{stco, 1}, std::pair{stco, -3}, std::pair{stsz, -7}}) {
      std::string bytes = whole;
      put_u32(bytes, at, get_u32(bytes, at) + static_cast<std::uint32_t>(more));
      write_bytes(path, bytes);
      const auto table = read_packet_table(path, true, soon());
      ASSERT_FALSE(table) << (at == stco ? "stco " : "stsz ") << more;
      EXPECT_EQ(table.error().code(), Errc::data_loss);
      EXPECT_NE(table.error().message().find(path), std::string::npos) << table.error().message();
    }
  }
}

TEST_F(ContainerTest, ACodecThatNobodyKnowsIsDataLoss) {
  for (const auto& [video, box] : {std::pair{ForeignVideo{}, "avc1"}, {ForeignVideo{}, "stsd"}, {kAv1, "av01"}}) {
    if (!has_encoder(video.encoder.c_str())) continue;
    SCOPED_TRACE(box);
    const std::string path = folder_ / "a.mp4";
    encode_foreign(path, video);
    std::string bytes = text_of(path);
    bytes.replace(bytes.find(box, bytes.find("stsd")), 4, "free");
    write_bytes(path, bytes);
    const auto table = probe_video(path);
    ASSERT_FALSE(table);
    EXPECT_EQ(table.error().code(), Errc::data_loss);
    EXPECT_NE(table.error().message().find(path), std::string::npos) << table.error().message();
  }
}

TEST_F(ContainerTest, AFileThatShrinksWhileItIsOpenIsDataLoss) {
  const std::string path = folder_ / "a.mp4";
  encode_texture(path, 40, {.gop = 10});
  for (const bool cached : {true, false}) {
    encode_texture(path, 40, {.gop = 10});
    const auto table = read_packet_table(path, false, soon()).value();
    std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
    ClipDecoder decoder(
        {.find_table = [&](const std::string&, const FileIdentity&) { return table; }, .cached_reads = cached});
    EXPECT_EQ(yuv_hashes(decoder, path, {39}).error().code(), Errc::data_loss);
    EXPECT_EQ(decoder.counters().retries, 1);
  }
}

}  // namespace
}  // namespace troupe::data
