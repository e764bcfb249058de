#include "data/video/nvdec.h"

#include <gtest/gtest.h>

#include "tests/data/video/coded_video.h"

namespace troupe::data {
namespace {

TEST(NvdecTest, WithoutAGpuTheErrorSaysSo) {
  if (check_nvdec()) GTEST_SKIP() << "an NVIDIA GPU is here";
  const ScratchFolder folder;
  encode_texture(folder / "a.mp4", 12, {});
  ClipDecoder decoder({.backend = "nvdec"});
  const auto read = yuv_hashes(decoder, folder / "a.mp4", {3});
  EXPECT_EQ(read.error().code(), Errc::failed_precondition);
  EXPECT_NE(read.error().message().find("data.decoder.backend"), std::string::npos) << read.error().message();
}

TEST(NvdecTest, ChromaIsSplit) {
  const AvFrame nv12(av_frame_alloc()), planar(av_frame_alloc());
  nv12->format = AV_PIX_FMT_NV12;
  planar->format = AV_PIX_FMT_YUV420P;
  nv12->width = planar->width = 10;
  nv12->height = planar->height = 6;
  ASSERT_GE(av_frame_get_buffer(nv12.get(), 0), 0);
  ASSERT_GE(av_frame_get_buffer(planar.get(), 0), 0);
  for (int y = 0; y < 6; ++y) {
    for (int x = 0; x < 10; ++x) nv12->data[0][y * nv12->linesize[0] + x] = static_cast<std::uint8_t>(10 * y + x);
  }
  for (int y = 0; y < 3; ++y) {
    for (int x = 0; x < 10; ++x) nv12->data[1][y * nv12->linesize[1] + x] = static_cast<std::uint8_t>(100 + 10 * y + x);
  }
  split_chroma(*nv12, *planar);
  for (int y = 0; y < 6; ++y) {
    for (int x = 0; x < 10; ++x) EXPECT_EQ(planar->data[0][y * planar->linesize[0] + x], 10 * y + x);
  }
  for (int y = 0; y < 3; ++y) {
    for (int x = 0; x < 5; ++x) {
      EXPECT_EQ(planar->data[1][y * planar->linesize[1] + x], 100 + 10 * y + 2 * x);
      EXPECT_EQ(planar->data[2][y * planar->linesize[2] + x], 100 + 10 * y + 2 * x + 1);
    }
  }
}

}  // namespace
}  // namespace troupe::data
