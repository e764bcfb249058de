#include "data/video/packet_codec.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "data/index/file_table.h"
#include "data/toy/toy_dataset.h"
#include "data/video/mp4_facts.h"
#include "tests/data/video/video_test_support.h"

extern "C" {
#include <libavcodec/codec_par.h>
}

namespace troupe::data {
namespace {

/// Every recorded video at hand and those of a toy dataset.
class PacketCodecTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_toy_dataset(toy_ / "toy", {.episodes = 1, .frames = 24, .gop = 6}));
    for (const std::string& root : {toy_ / "toy", shared_data()}) {
      std::error_code absent;
      for (const auto& e : std::filesystem::recursive_directory_iterator(root, absent)) {
        if (e.path().extension() == ".mp4") videos_.push_back(e.path().string());
      }
    }
    ASSERT_GE(videos_.size(), 2u);
  }
  static std::shared_ptr<const PacketTable> table_of(const std::string& path) {
    return read_packet_table(path, true, soon()).value();
  }
  ScratchFolder toy_;
  std::vector<std::string> videos_;
};

void expect_same(const PacketTable& a, const PacketTable& b) {
  ASSERT_EQ(a.samples.size(), b.samples.size());
  for (std::size_t i = 0; i < a.samples.size(); ++i) {
    EXPECT_EQ(a.samples[i].offset, b.samples[i].offset);
    EXPECT_EQ(a.samples[i].size, b.samples[i].size);
    EXPECT_EQ(a.samples[i].rank, b.samples[i].rank);
    EXPECT_EQ(a.samples[i].key, b.samples[i].key);
  }
  EXPECT_EQ(a.decode_of_rank, b.decode_of_rank);
  EXPECT_EQ(a.reordered, b.reordered);
  EXPECT_EQ(a.one_ref, b.one_ref);
  EXPECT_EQ(a.fps, b.fps);
  EXPECT_EQ(a.uneven, b.uneven);
  EXPECT_EQ(a.first_seconds, b.first_seconds);
}

TEST_F(PacketCodecTest, RealTablesComeBackInAFewBytesAFrame) {
  for (const std::string& path : videos_) {
    SCOPED_TRACE(path);
    const auto table = table_of(path);
    const std::string bytes = encode_packets(*table);
    const auto again =
        decode_packets(std::as_bytes(std::span(bytes)), static_cast<std::int64_t>(std::filesystem::file_size(path)));
    expect_same(*table, **again);
    if (table->samples.size() > 100 && !table->reordered) {
      EXPECT_LT(bytes.size(), 5 * table->samples.size());
    }

    const std::string codec = encode_codec(*table);
    const auto decoded = decode_codec(std::as_bytes(std::span(codec)));
    const AVCodecParameters &a = *table->codec, &b = *decoded->parameters;
    EXPECT_EQ(decoded->pix_fmt, table->pix_fmt);
    EXPECT_EQ(a.codec_id, b.codec_id);
    EXPECT_EQ(a.codec_tag, b.codec_tag);
    EXPECT_EQ(a.width, b.width);
    EXPECT_EQ(a.height, b.height);
    EXPECT_EQ(a.format, b.format);
    EXPECT_EQ(a.profile, b.profile);
    EXPECT_EQ(a.color_space, b.color_space);
    EXPECT_EQ(a.color_range, b.color_range);
    EXPECT_EQ(std::string(reinterpret_cast<char*>(a.extradata), static_cast<std::size_t>(a.extradata_size)),
              std::string(reinterpret_cast<char*>(b.extradata), static_cast<std::size_t>(b.extradata_size)));
  }
}

TEST_F(PacketCodecTest, ReorderedHiddenAndScatteredSamplesComeBack) {
  PacketTable table;
  table.fps = 29.97;
  table.first_seconds = -0.04;
  table.uneven = table.one_ref = true;
  // decode order with B-frames, one hidden sample, gaps between samples in both directions
  const std::int32_t ranks[] = {-1, 0, 3, 1, 2, 6, 4, 5};
  std::int64_t offset = 5'000'000'000;
  for (std::size_t i = 0; i < 8; ++i) {
    table.samples.push_back(
        {.offset = offset, .size = 100 + static_cast<std::int32_t>(i), .rank = ranks[i], .key = i == 0 || i == 5});
    offset += i % 2 == 0 ? 4000 : -1500;
  }
  table.decode_of_rank = {1, 3, 4, 2, 6, 7, 5};
  table.reordered = true;
  const std::string bytes = encode_packets(table);
  const auto again = decode_packets(std::as_bytes(std::span(bytes)), 6'000'000'000);
  expect_same(table, **again);
  EXPECT_FALSE(decode_packets(std::as_bytes(std::span(bytes)), 5'000'000'100)) << "samples outside the file";
}

TEST_F(PacketCodecTest, DamagedBytesAreRefusedOrInBounds) {
  const auto table = table_of(videos_[0]);
  const std::string packets = encode_packets(*table), codec = encode_codec(*table);
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(videos_[0]));
  for (std::size_t n = 0; n < packets.size(); ++n)
    ASSERT_FALSE(decode_packets(std::as_bytes(std::span(packets).first(n)), bytes)) << n;
  for (std::size_t n = 0; n < codec.size(); ++n)
    ASSERT_FALSE(decode_codec(std::as_bytes(std::span(codec).first(n)))) << n;
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    std::string wrong = packets;
    wrong[random() % wrong.size()] = static_cast<char>(random());
    if (const auto read = decode_packets(std::as_bytes(std::span(wrong)), bytes)) {
      for (const VideoSample& s : (*read)->samples) {
        ASSERT_GE(s.offset, 0);
        ASSERT_LE(s.offset + s.size, bytes);
        ASSERT_LT(s.rank, static_cast<std::int32_t>((*read)->decode_of_rank.size()));
      }
      for (const std::int32_t place : (*read)->decode_of_rank)
        ASSERT_LT(static_cast<std::size_t>(place), (*read)->samples.size());
    }
    std::string parameters = codec;
    parameters[random() % parameters.size()] = static_cast<char>(random());
    (void)decode_codec(std::as_bytes(std::span(parameters)));
  }
}

TEST_F(PacketCodecTest, TheFilesIndexHoldsTablesAndGops) {
  const std::string path = (std::filesystem::path(toy_ / "toy") / "videos").string();
  FileTableWriter out;
  const auto table = table_of(videos_[0]);
  const GopLengths gop = gop_lengths(*table);
  EXPECT_EQ(gop, (GopLengths{6, 6, 6}));
  out.add("videos/a.mp4",
          {.state = file_state(videos_[0]), .video = describe_video(*table), .gop = gop, .packets = table});
  out.add("videos/b.mp4",
          {.state = file_state(videos_[0]), .video = describe_video(*table), .gop = gop, .packets = table});
  const auto file = IndexFile::from_bytes(out.finish(), IndexKind::files, "m");
  const auto files = FileTable::open(*file);
  FileTableWriter copy;
  for (std::size_t i = 0; i < (*files)->size(); ++i) copy.keep(**files, i);
  EXPECT_EQ(copy.finish(), out.finish()) << "entries that are taken over are the same bytes";
  const auto packets = (*files)->packets(1);
  ASSERT_TRUE(packets && *packets);
  expect_same(*table, **packets);
  const auto entry = (*files)->entry(0);
  EXPECT_EQ(entry->gop, gop);
  EXPECT_EQ(entry->video->frames, static_cast<std::int64_t>(table->decode_of_rank.size()));
  EXPECT_EQ(entry->video->codec, "h264");
}

TEST_F(PacketCodecTest, DamagedPacketsAreFoundWhenTheyAreAskedFor) {
  FileTableWriter out;
  const auto table = table_of(videos_[0]);
  out.add("a.mp4", {.state = file_state(videos_[0]), .video = describe_video(*table), .packets = table});
  std::string bytes = out.finish();
  bytes.back() ^= 1;
  const auto file = IndexFile::from_bytes(bytes, IndexKind::files, "m");
  ASSERT_TRUE(file) << "opening does not read packet tables";
  const auto files = FileTable::open(*file);
  EXPECT_EQ((*files)->packets(0).error().code(), Errc::data_loss);
}

TEST_F(PacketCodecTest, Mp4FactsAgreeWithTheDemuxer) {
  for (const std::string& path : videos_) {
    SCOPED_TRACE(path);
    const auto facts = read_mp4_facts(path);
    const auto table = table_of(path);
    EXPECT_GT(facts->timescale, 0u);
    const bool index_first = static_cast<std::int64_t>(text_of(path).find("moov")) < table->samples.front().offset;
    EXPECT_EQ(facts->fast_start, index_first);
  }
  EXPECT_EQ(read_mp4_facts(toy_ / "none.mp4").error().code(), Errc::not_found);
  write_bytes(toy_ / "junk.mp4", std::string_view("no boxes at all, only text"));
  EXPECT_EQ(read_mp4_facts(toy_ / "junk.mp4").error().code(), Errc::data_loss);
}

}  // namespace
}  // namespace troupe::data
