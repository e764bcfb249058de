#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "data/video/clip_decoder.h"
#include "data/video/packet_table.h"
#include "data/video/video_file.h"
#include "tests/data/video/video_test_support.h"
#include "tests/support/golden_folder.h"
#include "tests/support/safetensors_bytes.h"

namespace troupe::data {
namespace {

using Json = nlohmann::json;

/// The videos of the golden cases, each with its path; skips by name where either is absent. A case's keys name its
/// videos: "<folder> episode <n>" (its only view) or "<folder> <file stem>", below the shared data.
class GoldenDecodeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto cases = golden_cases("data");
    std::erase_if(cases, [](const GoldenCase& c) { return c.file.stem() != "decode"; });
    if (cases.empty()) GTEST_SKIP() << "no golden case of kind decode in " << golden_roots_text();
    if (!std::filesystem::exists(shared_data())) GTEST_SKIP() << "no shared data at " << shared_data();
    for (const GoldenCase& c : cases) {
      ASSERT_TRUE(c.json.is_object() && !c.json.empty()) << c.file << " names no video";
      for (const auto& [key, facts] : c.json.items()) {
        const auto path = shared_video(key);
        ASSERT_FALSE(path.empty()) << c.file << ": " << key << " is not in " << shared_data();
        videos_.push_back({key, path.string(), facts});
      }
    }
  }

  struct Video {
    std::string key, path;
    Json facts;
  };
  std::vector<Video> videos_;
};

std::vector<std::int64_t> all_frames(const Json& facts) {
  std::vector<std::int64_t> frames(facts["frames"].get<std::size_t>());
  std::iota(frames.begin(), frames.end(), 0);
  return frames;
}

TEST_F(GoldenDecodeTest, ContainerFactsAreThoseOfTheReference) {
  for (const Video& v : videos_) {
    SCOPED_TRACE(v.key);
    const auto info = probe_video(v.path);
    EXPECT_EQ(info->width, v.facts["width"]);
    EXPECT_EQ(info->height, v.facts["height"]);
    EXPECT_EQ(info->frames, v.facts["frames"]);
    EXPECT_EQ(info->codec, v.facts["codec"]);
    EXPECT_EQ(info->pix_fmt, v.facts["pix_fmt"]);
    EXPECT_EQ(info->has_b_frames, v.facts["reordered"]);
    EXPECT_DOUBLE_EQ(info->fps, v.facts["probed_fps_rlinf"]);
  }
}

TEST_F(GoldenDecodeTest, PresentationIndexOfEveryPacketIsExact) {
  for (const Video& v : videos_) {
    SCOPED_TRACE(v.key);
    const auto table = read_packet_table(v.path, false, soon());
    std::vector<std::int32_t> ranks;
    std::vector<std::int64_t> keys;
    for (const VideoSample& s : (*table)->samples) {
      ranks.push_back(s.rank);
      if (s.key) keys.push_back(s.rank);
    }
    EXPECT_EQ(xxh64_hex(ranks), v.facts["packet_presentation_index_xxh64_i32"]);
    EXPECT_EQ(keys, v.facts["key_frames_presentation"].get<std::vector<std::int64_t>>());
    for (std::size_t i = 0; i < v.facts["first_12_packets_in_file_order"].size(); ++i) {
      EXPECT_EQ((*table)->samples[i].size, v.facts["first_12_packets_in_file_order"][i]["bytes"]);
    }
  }
}

TEST_F(GoldenDecodeTest, EveryFrameIsBitExactAsYuvAndAsRgb) {
  ClipDecoder decoder;
  for (const Video& v : videos_) {
    SCOPED_TRACE(v.key);
    const auto frames = all_frames(v.facts);
    std::vector<std::string> yuv, rgb;
    const auto keep_yuv = [&](std::size_t, const Yuv420View& p) -> Result<void> {
      return yuv.push_back(xxh64_hex(packed(p))), Result<void>();
    };
    const auto keep_rgb = [&](std::size_t, const Rgb8View& p) -> Result<void> {
      return rgb.push_back(xxh64_hex(packed(p))), Result<void>();
    };
    decoder.read_yuv(v.path, frames, keep_yuv, soon()).value();
    decoder.read(v.path, frames, keep_rgb, soon()).value();
    EXPECT_EQ(yuv, v.facts["yuv420p_xxh64"].get<std::vector<std::string>>());
    EXPECT_EQ(rgb, v.facts["rgb24_xxh64"].get<std::vector<std::string>>());
  }
}

TEST_F(GoldenDecodeTest, RandomAccessGivesTheSameFrames) {
  ClipDecoder decoder;
  for (const Video& v : videos_) {
    SCOPED_TRACE(v.key);
    const auto check = [&](const std::vector<std::int64_t>& frames) {
      decoder
          .read(
              v.path, frames,
              [&](std::size_t i, const Rgb8View& p) -> Result<void> {
                EXPECT_EQ(xxh64_hex(packed(p)), v.facts["rgb24_xxh64"][static_cast<std::size_t>(frames[i])])
                    << "frame " << frames[i];
                return {};
              },
              soon())
          .value();
    };
    auto frames = v.facts["random_access_indices"].get<std::vector<std::int64_t>>();
    for (const std::int64_t one : frames) check({one});
    std::sort(frames.begin(), frames.end());  // with repeats
    check(frames);
  }
}

TEST_F(GoldenDecodeTest, WholeFramesAreThoseOfTheReference) {
  const auto path = find_golden("data/decode_frames.safetensors");
  if (path.empty()) GTEST_SKIP() << "no decode_frames.safetensors in " << golden_roots_text();
  const SafetensorsBytes golden(path.string());
  ClipDecoder decoder;
  for (const auto& entry : golden.tensors()) {
    const std::string& name = entry.first;
    SCOPED_TRACE(name);
    const std::size_t slash = name.find("/frame_");
    ASSERT_NE(slash, std::string::npos);
    // "droid-views_exterior_image_1_left" stands for the key "droid-views exterior_image_1_left"
    const auto video = std::find_if(videos_.begin(), videos_.end(), [&](const Video& v) {
      std::string flat = v.key;
      std::replace(flat.begin(), flat.end(), ' ', '_');
      return flat == name.substr(0, slash);
    });
    ASSERT_NE(video, videos_.end());
    const std::int64_t frame[] = {std::stoll(name.substr(slash + 7))};
    decoder
        .read(
            video->path, frame,
            [&](std::size_t, const Rgb8View& p) -> Result<void> {
              EXPECT_TRUE(packed(p) == entry.second.as<std::uint8_t>());
              return {};
            },
            soon())
        .value();
  }
}

}  // namespace
}  // namespace troupe::data
