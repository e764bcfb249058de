// How much work a clip costs: files opened, tables read, frames fed. No times.
#include <gtest/gtest.h>

#include "data/video/decode_plan.h"
#include "data/video/packet_table.h"
#include "tests/data/video/coded_video.h"

namespace troupe::data {
namespace {

class ClipWorkTest : public ::testing::Test {
 protected:
  std::vector<std::string> all(const std::string& path, std::int64_t count) {
    ClipDecoder decoder;
    return yuv_hashes(decoder, path, stepped(0, 1, count)).value();
  }

  ScratchFolder folder_;
};

TEST_F(ClipWorkTest, FilesStayOpenAndTablesStayRead) {
  const std::string a = folder_ / "a.mp4", b = folder_ / "b.mp4";
  encode_texture(a, 60, {.gop = 12});
  encode_texture(b, 60, {.gop = 12});
  ClipDecoder decoder;
  for (int round = 0; round < 5; ++round) {
    ASSERT_TRUE(yuv_hashes(decoder, a, stepped(round, 3, 10)));
    ASSERT_TRUE(yuv_hashes(decoder, b, stepped(round, 3, 10)));
  }
  EXPECT_EQ(decoder.counters().files_opened, 2);
  EXPECT_EQ(decoder.counters().tables_read, 2);
  EXPECT_EQ(decoder.counters().contexts_opened, 1);
}

TEST_F(ClipWorkTest, TheFileUsedLongestAgoIsClosedFirst) {
  for (const char* name : {"a.mp4", "b.mp4", "c.mp4"}) encode_texture(folder_ / name, 12, {});
  ClipDecoder decoder({.open_files = 2});
  for (const char* name : {"a.mp4", "b.mp4", "a.mp4", "c.mp4", "a.mp4"})
    ASSERT_TRUE(yuv_hashes(decoder, folder_ / name, {3}));
  EXPECT_EQ(decoder.counters().files_opened, 3);
  ASSERT_TRUE(yuv_hashes(decoder, folder_ / "b.mp4", {3}));
  EXPECT_EQ(decoder.counters().files_opened, 4);
}

TEST_F(ClipWorkTest, ATableOfTheIndexIsUsedUntilItLeadsToAnError) {
  const std::string path = folder_ / "a.mp4";
  encode_texture(path, 24, {});
  const auto table = read_packet_table(path, false, soon()).value();
  auto wrong = std::make_shared<PacketTable>(*table);
  for (VideoSample& sample : wrong->samples) sample.offset += 100;
  std::shared_ptr<const PacketTable> given = table;
  ClipDecoder::Options options;
  options.find_table = [&](const std::string& asked, const FileIdentity& identity) {
    EXPECT_EQ(asked, path);
    EXPECT_EQ(identity, identify_video_file(path).value());
    return given;
  };
  const auto expected = all(path, 24);
  ClipDecoder good(options);
  EXPECT_EQ(yuv_hashes(good, path, stepped(0, 1, 24)).value(), expected);
  EXPECT_EQ(good.counters().tables_found, 1);
  EXPECT_EQ(good.counters().tables_read, 0);
  given = wrong;
  ClipDecoder misled(options);
  EXPECT_EQ(yuv_hashes(misled, path, stepped(0, 1, 24)).value(), expected);
  EXPECT_EQ(misled.counters().retries, 1);
  EXPECT_EQ(misled.counters().tables_read, 1);
}

TEST_F(ClipWorkTest, LongGroupsCostTheWayFromTheKeyAndNotMore) {
  const std::string path = folder_ / "a.mp4";
  encode_texture(path, 400, {.gop = 250});
  ClipDecoder decoder;
  ASSERT_TRUE(yuv_hashes(decoder, path, stepped(120, 3, 33)));
  EXPECT_EQ(decoder.counters().samples_fed, 217);  // 0 .. 216
  ASSERT_TRUE(yuv_hashes(decoder, path, stepped(255, 3, 33)));
  EXPECT_EQ(decoder.counters().samples_fed, 217 + 102);  // 250 .. 351
  EXPECT_EQ(decoder.counters().frames_delivered, 66);
}

TEST_F(ClipWorkTest, GroupsOfTwoCostKeysAndTargets) {
  const std::string path = folder_ / "a.mp4";
  encode_texture(path, 120, {.gop = 2});
  EXPECT_TRUE(read_packet_table(path, false, soon()).value()->one_ref);
  ClipDecoder decoder;
  const auto clip = yuv_hashes(decoder, path, stepped(6, 3, 33));
  EXPECT_EQ(decoder.counters().samples_fed, 33 + 16);  // 16 of the targets follow a key
  const auto expected = all(path, 120);
  for (std::size_t i = 0; i < 33; ++i) EXPECT_EQ((*clip)[i], expected[6 + 3 * i]);
}

TEST_F(ClipWorkTest, UnwantedDisposableFramesAreNotDecoded) {
  const std::string path = folder_ / "a.mp4";
  encode_texture(path, 200, {.gop = 100, .b_frames = 3});
  const auto table = read_packet_table(path, false, soon()).value();
  ASSERT_TRUE(table->reordered);
  EXPECT_FALSE(table->one_ref);
  ClipDecoder decoder;
  const auto clip = yuv_hashes(decoder, path, stepped(50, 3, 33));
  const auto& counters = decoder.counters();
  EXPECT_GT(counters.samples_dropped, 0);
  EXPECT_LT(counters.samples_fed, 147 - 33);  // frames 0 .. 146 lie on the way
  const auto expected = all(path, 200);
  for (std::size_t i = 0; i < 33; ++i) EXPECT_EQ((*clip)[i], expected[50 + 3 * i]);
}

TEST_F(ClipWorkTest, TwoFrameGroupsOfAv1CostKeysAndTargets) {
  const auto path = shared_video("g1-bottle episode 0");
  if (path.empty()) GTEST_SKIP() << "no g1-bottle in " << shared_data();
  EXPECT_TRUE(read_packet_table(path.string(), false, soon()).value()->one_ref);
  ClipDecoder decoder;
  ASSERT_TRUE(yuv_hashes(decoder, path.string(), stepped(10, 3, 33)));
  EXPECT_EQ(decoder.counters().samples_fed, 49);
}

TEST_F(ClipWorkTest, SamplesThatAProofMakesNeedlessAreNotFed) {
  // groups of four whose frames refer to their key alone: what the flag promises, written by hand
  PacketTable table;
  for (std::int32_t i = 0; i < 8; ++i) table.samples.push_back({.rank = i, .key = i % 4 == 0});
  table.decode_of_rank = {0, 1, 2, 3, 4, 5, 6, 7};
  const std::vector<std::int64_t> frames = {2, 5, 7};
  const auto runs = plan_runs(table, frames);
  EXPECT_EQ(feed_order(table, runs, frames), (std::vector<std::int32_t>{0, 1, 2, 4, 5, 6, 7}));
  table.one_ref = true;
  EXPECT_EQ(feed_order(table, runs, frames), (std::vector<std::int32_t>{0, 2, 4, 5, 7}));
}

TEST_F(ClipWorkTest, ReadsThroughTheThreadGiveTheSameFrames) {
  const std::string path = folder_ / "a.mp4";
  // larger than one piece of a read, so that the next piece is fetched ahead
  encode_texture(path, 120, {.width = 320, .height = 240, .gop = 40, .crf = 5}, 60);
  ASSERT_GT(std::filesystem::file_size(path), 3u << 20);
  ClipDecoder cached, thread({.cached_reads = false});
  const auto frames = stepped(0, 3, 40);
  EXPECT_EQ(yuv_hashes(thread, path, frames).value(), *yuv_hashes(cached, path, frames));
  EXPECT_EQ(thread.counters().bytes_read, cached.counters().bytes_read);
  EXPECT_GT(thread.counters().decode_seconds, 0);
  EXPECT_GT(thread.counters().read_seconds, 0);
}

}  // namespace
}  // namespace troupe::data
