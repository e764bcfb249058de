// Episodes cut out of files whose groups of pictures lean on each other keep their frames.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "data/video/clip_decoder.h"
#include "tests/data/convert/convert_test_support.h"
#include "tests/data/video/coded_video.h"
#include "tests/data/video/foreign_video.h"
#include "tests/support/lerobot_writer.h"

namespace troupe::data {
namespace {

class OpenGopConvertTest : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Streams, OpenGopConvertTest,
                         ::testing::Values("open-gop=1:scenecut=0:b-adapt=0", "intra-refresh=1:bframes=0"));

TEST_P(OpenGopConvertTest, EveryFrameOfEveryEpisodeIsTheSources) {
  if (!has_encoder("libx264")) GTEST_SKIP() << "this FFmpeg has no libx264";
  testing::LerobotSet set;
  set.rows = {20, 13, 10, 6};  // of a file with a key every 10 frames: at a key, between two, near the end
  set.cameras = {"left"};
  set.height = 48;
  set.width = 64;
  set.fps = 20;
  set.video_episodes = 4;
  std::string source;
  set.write_video = [&](const std::string& path, const auto&) {
    source = path;
    encode_foreign(path,
                   {.frames = 49, .b_frames = 3, .options = {{"x264-params", std::string("keyint=10:") + GetParam()}}});
  };
  const testing::LerobotFolder files(set);
  const auto whole = decode_in_one_go(source);
  ASSERT_EQ(whole.size(), 49u);

  const ScratchFolder scratch;
  ConvertDatasetRequest request;
  request.sources = {files.root()};
  request.out = scratch / "out";
  request.to = DatasetVersion::v21;
  request.encoding.crf = 0;  // lossless, where frames are coded anew
  request.verify = ConvertVerify::full;
  const auto report = convert_dataset(request);
  ASSERT_TRUE(report) << report.error().message();
  ClipDecoder decoder;
  std::int64_t first = 0;
  for (std::size_t e = 0; e < set.rows.size(); first += set.rows[e++]) {
    const std::string out =
        fmt::format("{}/videos/chunk-000/observation.images.left/episode_{:06}.mp4", request.out, e);
    const auto got = yuv_hashes(decoder, out, stepped(0, 1, set.rows[e]));
    ASSERT_TRUE(got) << got.error().message();
    EXPECT_EQ(*got, std::vector<std::string>(whole.begin() + first, whole.begin() + first + set.rows[e])) << e;
  }
}

}  // namespace
}  // namespace troupe::data
