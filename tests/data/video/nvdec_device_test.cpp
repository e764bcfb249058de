// The GPU's decoder against the CPU's. Needs an NVIDIA GPU; skipped by name without one.
#include <gtest/gtest.h>

#include "data/video/nvdec.h"
#include "tests/data/video/coded_video.h"

namespace troupe::data {
namespace {

TEST(NvdecDeviceTest, FramesOfTheGpuAreThoseOfTheCpu) {
  if (const auto gpu = check_nvdec(); !gpu) GTEST_SKIP() << gpu.error().message();
  ScratchFolder folder;
  ClipDecoder cpu, gpu({.backend = "nvdec"});
  for (const std::int64_t b_frames : {0, 2}) {
    const std::string path = folder / "a.mp4";
    std::filesystem::remove(path);
    encode_texture(path, 60, {.width = 320, .height = 240, .gop = 20, .b_frames = b_frames});
    const auto frames = stepped(3, 3, 15);
    const auto expected = yuv_hashes(cpu, path, frames), given = yuv_hashes(gpu, path, frames);
    EXPECT_EQ(*given, *expected);
  }
}

TEST(NvdecDeviceTest, AStreamThatTheGpuCannotDecodeIsRefusedByName) {
  if (const auto gpu = check_nvdec(); !gpu) GTEST_SKIP() << gpu.error().message();
  const auto path = shared_video("g1-bottle episode 0");
  if (path.empty()) GTEST_SKIP() << "no g1-bottle in " << shared_data();
  ClipDecoder decoder({.backend = "nvdec"});
  const auto read = yuv_hashes(decoder, path.string(), {0, 1});
  if (read) GTEST_SKIP() << "this GPU decodes AV1";
  EXPECT_EQ(read.error().code(), Errc::invalid_argument);
  EXPECT_NE(read.error().message().find("data.decoder.backend"), std::string::npos) << read.error().message();
}

}  // namespace
}  // namespace troupe::data
