// What info.json says of cameras against their files: sizes, codecs, depth maps, images of 16 bits.
#include "data/health/stated_cameras.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "data/dataset.h"
#include "data/health/dataset_keys.h"
#include "data/health/health_check.h"
#include "data/health/report_text.h"
#include "data/toy/toy_dataset.h"
#include "tests/data/video/foreign_video.h"
#include "tests/support/folder_files.h"
#include "tests/support/lerobot_writer.h"
#include "tests/support/scratch_folder.h"

namespace troupe::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using OrderedJson = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr const char* kFront = "observation.images.front";
constexpr const char* kSide = "observation.images.side";

HealthOptions options_for(const std::string& root, const ScratchFolder& folder, bool decode = false) {
  HealthOptions options;
  options.data = root;
  options.decode = decode;
  options.index.path = folder / "index";
  options.window = {.chunks = 2, .macro_stride = 4, .action_horizon = 4, .video_offsets = {0, 2}};
  options.horizon = 4;
  options.threads = 2;
  return options;
}

std::vector<std::string> texts(const HealthReport& r, const std::string& code, FindingLevel level) {
  std::vector<std::string> out;
  for (const HealthFinding& f : r.findings) {
    if (f.code == code && f.level == level) out.push_back(f.text);
  }
  return out;
}

/// A toy dataset: two cameras, 32x32, h264, 10 frames a second.
class StatedCamerasTest : public ::testing::Test {
 protected:
  void SetUp() override { write_toy_dataset(root_, {.episodes = 3, .frames = 32, .height = 32, .width = 32}).value(); }
  void edit_info(const std::function<void(OrderedJson& features)>& edit) const {
    const std::string path = root_ + "/meta/info.json";
    auto json = OrderedJson::parse(text_of(path));
    edit(json["features"]);
    std::ofstream(path) << json.dump(1);
  }
  std::string video(int episode, const std::string& camera) const {
    return fmt::format("{}/videos/chunk-000/{}/episode_{:06}.mp4", root_, camera, episode);
  }
  HealthReport check() const { return check_health(options_for(root_, folder_)).value(); }

  ScratchFolder folder_;
  const std::string root_ = folder_ / "toy";
};

TEST_F(StatedCamerasTest, WhatAgreesIsNotMentioned) {
  const HealthReport r = check();
  EXPECT_THAT(texts(r, "D02", FindingLevel::warning), IsEmpty());
  EXPECT_THAT(texts(r, "D06", FindingLevel::note), IsEmpty());
}

TEST_F(StatedCamerasTest, EveryFactThatInfoJsonHasWrongIsNamedOnceWithBothSides) {
  edit_info([](OrderedJson& features) {
    features[kFront]["shape"] = {48, 64, 3};
    features[kFront]["info"]["video.width"] = 64;
    features[kSide]["info"]["video.codec"] = "av1";
    features[kSide]["info"]["video.pix_fmt"] = "yuv444p";
    features[kSide]["info"]["video.fps"] = 30;
  });
  const HealthReport r = check();
  EXPECT_EQ(r.count(FindingLevel::problem), 0) << stats_text(r);
  const std::string info = root_ + "/meta/info.json";
  EXPECT_THAT(
      texts(r, "D02", FindingLevel::warning),
      ElementsAre(
          AllOf(HasSubstr(video(0, kFront)), HasSubstr("are 32x32 (and 2 more"), HasSubstr(info + " says 64x48"),
                HasSubstr("(shape)"), HasSubstr("What the file has is used")),
          AllOf(HasSubstr(video(0, kFront)), HasSubstr("32x32"), HasSubstr("says 64x32"), HasSubstr("video.width")),
          AllOf(HasSubstr(video(0, kSide)), HasSubstr("h264"), HasSubstr("says av1"), HasSubstr(kSide)),
          AllOf(HasSubstr(video(0, kSide)), HasSubstr("yuv420p"), HasSubstr("says yuv444p")),
          AllOf(HasSubstr(video(0, kSide)), HasSubstr("10 a second"), HasSubstr("says 30 a second"))));
}

TEST_F(StatedCamerasTest, ACodecMayBeNamedByItsEncoder) {
  edit_info([](OrderedJson& features) { features[kFront]["info"]["video.codec"] = "libx264"; });
  EXPECT_THAT(texts(check(), "D02", FindingLevel::warning), IsEmpty());
}

TEST_F(StatedCamerasTest, OneFileOfAnotherSizeIsFoundByName) {
  encode_foreign(video(1, kSide), {.frames = 60, .width = 48, .height = 48, .gop = 12});
  EXPECT_THAT(texts(check(), "D02", FindingLevel::warning),
              ::testing::Contains(AllOf(HasSubstr(video(1, kSide)), HasSubstr("48x48"), HasSubstr("says 32x32"))));
}

TEST_F(StatedCamerasTest, ADepthMapIsLeftOutByNameAndRefusedAsAView) {
  for (const char* key : {"video.is_depth_map", "is_depth_map"}) {
    SCOPED_TRACE(key);
    edit_info([&](OrderedJson& features) {
      features[kSide]["info"].erase("video.is_depth_map");
      features[kSide]["info"].erase("is_depth_map");
      features[kSide]["info"][key] = true;
    });
    // the toy dataset's modality.json calls it a view
    HealthReport r = check();
    EXPECT_THAT(texts(r, "D06", FindingLevel::warning),
                ElementsAre(AllOf(HasSubstr("meta/modality.json"), HasSubstr(kSide), HasSubstr("depth map"))));
    ASSERT_EQ(r.cameras.size(), 1u);
    EXPECT_EQ(r.cameras[0].feature, kFront);

    HealthOptions options = options_for(root_, folder_);
    options.embodiment.emplace();
    options.embodiment->tag = "toy";
    options.embodiment->views = {"front", "side"};
    options.embodiment->state_keys = {"arm"};
    options.embodiment->action_keys = {"arm"};
    const auto refused = check_health(options);
    ASSERT_FALSE(refused);
    for (const std::string& part : {std::string(kSide), std::string("depth map"), std::string("is_depth_map")})
      EXPECT_THAT(refused.error().message(), HasSubstr(part));

    DatasetSpec spec;
    spec.path = root_;
    spec.embodiment = *options.embodiment;
    const auto opened = Dataset::open(spec);
    ASSERT_FALSE(opened) << "training would open it";
    EXPECT_THAT(opened.error().message(), HasSubstr("depth map"));
  }
  fs::remove(root_ + "/meta/modality.json");
  EXPECT_THAT(texts(check(), "D06", FindingLevel::note),
              ElementsAre(AllOf(HasSubstr("meta/info.json"), HasSubstr(kSide), HasSubstr("depth map"))));
}

TEST_F(StatedCamerasTest, DepthVideosThatAreNotMarkedAreRefusedByTheirPixels) {
  for (const auto& [encoder, format, name] :
       {std::tuple{"libx265", AV_PIX_FMT_GRAY12, "gray12le"}, {"ffv1", AV_PIX_FMT_GRAY16, "gray16le"}}) {
    SCOPED_TRACE(name);
    if (!has_encoder(encoder)) continue;
    const std::int64_t rows = check().episodes.at(0).rows;
    ForeignVideo depth{
        .encoder = encoder, .frames = rows, .width = 32, .height = 32, .pix_fmt = format, .muxer = "mov"};
    if (depth.encoder == "libx265") depth.options = {{"x265-params", "log-level=none"}};
    encode_foreign(video(0, kSide), depth);
    EXPECT_THAT(texts(check(), "D06", FindingLevel::problem),
                ElementsAre(AllOf(HasSubstr(video(0, kSide)), HasSubstr(name), HasSubstr("depth map"))));
  }
}

/// A set with a column of PNG images, whose coded frames a test changes.
HealthReport check_images(const std::function<void(std::size_t, std::int64_t, std::size_t, std::string&)>& edit) {
  testing::LerobotSet set;
  set.version = "v2.1";
  set.images = true;
  set.edit_image = edit;
  const testing::LerobotFolder files(set);
  const ScratchFolder folder;
  return check_health(options_for(files.root(), folder)).value();
}

TEST(StatedImagesTest, ImagesThatAgreeAreNotMentioned) {
  const HealthReport r = check_images({});
  EXPECT_EQ(r.count(FindingLevel::problem), 0) << stats_text(r);
  EXPECT_THAT(texts(r, "D02", FindingLevel::warning), IsEmpty());
}

TEST(StatedImagesTest, AnImageOfAnotherSizeIsAProblemThatNamesItsRow) {
  const HealthReport r = check_images([](std::size_t e, std::int64_t row, std::size_t camera, std::string& png) {
    if (e == 1 && row == 7 && camera == 0)
      png = testing::png_bytes(20, 10, testing::PngColor::rgb, 8, std::string(600, 'x'));
  });
  EXPECT_THAT(texts(r, "D06", FindingLevel::problem),
              ElementsAre(AllOf(HasSubstr("episode_000001.parquet"), HasSubstr("observation.images.left"),
                                HasSubstr("row 7 is 20x10"), HasSubstr("16x12"))));
}

TEST(StatedImagesTest, ImagesOfAnotherSizeThanInfoJsonSaysAreNamed) {
  const HealthReport r = check_images([](std::size_t, std::int64_t, std::size_t, std::string& png) {
    png = testing::png_bytes(20, 10, testing::PngColor::rgb, 8, std::string(600, 'x'));
  });
  EXPECT_EQ(r.count(FindingLevel::problem), 0) << stats_text(r);
  const auto found = texts(r, "D02", FindingLevel::warning);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found[0], AllOf(HasSubstr("episode_000000.parquet"), HasSubstr("20x10"), HasSubstr("says 16x12"),
                              HasSubstr("(and 4 more")));
}

TEST(StatedImagesTest, ImagesOf16BitsAreAProblemByName) {
  for (const auto& [color, samples, name] :
       {std::tuple{testing::PngColor::rgb, 3, "rgb48"}, std::tuple{testing::PngColor::grey, 1, "depth maps"}}) {
    const std::string deep =
        testing::png_bytes(16, 12, color, 16, std::string(static_cast<std::size_t>(samples * 2 * 192), 'x'));
    const HealthReport r = check_images([&](std::size_t e, std::int64_t, std::size_t camera, std::string& png) {
      if (e == 2 && camera == 1) png = deep;
    });
    EXPECT_THAT(texts(r, "D06", FindingLevel::problem),
                ElementsAre(AllOf(HasSubstr("episode_000002.parquet"), HasSubstr("observation.images.right"),
                                  HasSubstr(name), HasSubstr("16"))));
  }
}

TEST(StillImageSizeTest, HeadersAreReadWithoutDecoding) {
  const std::string png = testing::png_bytes(20, 10, testing::PngColor::rgb, 8, std::string(600, 'x'));
  const auto bytes = [](const std::string& text) { return std::as_bytes(std::span(text.data(), text.size())); };
  EXPECT_EQ(still_image_size(bytes(png)), (ImageSize{10, 20}));
  EXPECT_EQ(still_image_size(bytes(png.substr(0, 20))), std::nullopt);
  // SOI, a comment, SOF0: 8 bits, 33 lines of 65 samples
  const std::string jpeg("\xFF\xD8\xFF\xFE\x00\x04xx\xFF\xFF\xC0\x00\x11\x08\x00\x21\x00\x41\x03", 19);
  EXPECT_EQ(still_image_size(bytes(jpeg)), (ImageSize{33, 65}));
  for (std::size_t kept = 0; kept + 1 < jpeg.size(); ++kept)
    EXPECT_EQ(still_image_size(bytes(jpeg.substr(0, kept))), std::nullopt) << kept;
  EXPECT_EQ(still_image_size(bytes("a text that is no image at all")), std::nullopt);
}

}  // namespace
}  // namespace troupe::data
