// Golden kind `image`: the image chain against the references' transforms. A case names the recordings that its frames
// come from ("video": path below the shared data); the parts that need none run without them.
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <iostream>
#include <nlohmann/json.hpp>

#include "configs/embodiment_file.h"
#include "data/video/clip_decoder.h"
#include "image/color_jitter.h"
#include "image/image_chain.h"
#include "tests/data/video/video_test_support.h"
#include "tests/support/golden_folder.h"
#include "tests/support/safetensors_bytes.h"

namespace troupe::image {
namespace {

using Json = nlohmann::json;
using Bytes = std::vector<std::uint8_t>;

/// u8 tolerances of the golden folder's README: one level on at most this share of the values.
constexpr double kFrameShare = 0.01, kSampledShare = 0.05;
constexpr double kJitterTolerance = 1e-6;

/// One case of the kind with its tensors.
struct ImageCase {
  std::string path;
  Json facts;
  SafetensorsBytes tensors;

  /// A case may lack a part that another of its kind has.
  bool has(const char* part) const { return facts.contains(part) && !facts[part].empty(); }
};

class GoldenImageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const GoldenCase& c : golden_cases("data")) {
      if (c.file.stem() == "image") cases_.push_back({c.file.string(), c.json, SafetensorsBytes(c.tensors().string())});
    }
    ASSERT_FALSE(cases_.empty()) << "no golden case of kind image in " << golden_roots_text();
  }

  /// The cases that have a part.
  std::vector<const ImageCase*> with(const char* part) const {
    std::vector<const ImageCase*> out;
    for (const ImageCase& c : cases_) {
      if (c.has(part)) out.push_back(&c);
    }
    return out;
  }

  /// Decoded frames of one recording, packed, in the order asked for. Fails the test where it cannot be read.
  std::vector<Bytes> decode(const std::string& path, const std::vector<std::int64_t>& frames, std::int64_t& height,
                            std::int64_t& width) {
    std::vector<Bytes> images(frames.size());
    decoder_
        .read(
            path, frames,
            [&](std::size_t i, const Rgb8View& p) -> Result<void> {
              images[i] = packed(p);
              height = p.height;
              width = p.width;
              return {};
            },
            soon())
        .value();
    return images;
  }

  /// What is said of frames that are the reference's to the last bit: a share that is reported, not judged.
  void report(const char* part, std::int64_t exact, std::int64_t frames) {
    RecordProperty("bit_exact_frames", static_cast<int>(exact));
    RecordProperty("frames", static_cast<int>(frames));
    std::cout << part << ": " << exact << " of " << frames << " frames equal to the bit\n";
  }

  std::deque<ImageCase> cases_;  // never moved: tensors are views into their file
  ClipDecoder decoder_;
};

void expect_close(const Bytes& got, const Bytes& want, double share) {
  ASSERT_EQ(got.size(), want.size());
  std::size_t different = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const int apart = std::abs(int{got[i]} - int{want[i]});
    ASSERT_LE(apart, 1) << "at byte " << i;
    different += apart != 0;
  }
  EXPECT_LE(static_cast<double>(different), share * static_cast<double>(got.size()));
}

ColorJitter jitter_of(const Json& j) {
  ColorJitter jitter;
  if (j.is_null()) return jitter;
  for (const auto& op : j["order"]) jitter.order[static_cast<std::size_t>(jitter.operations++)] = op;
  jitter.brightness_factor = j.value("b", 1.0);
  jitter.contrast_factor = j.value("c", 1.0);
  jitter.saturation_factor = j.value("s", 1.0);
  jitter.hue_shift = j.value("h", 0.0);
  return jitter;
}

ImageConfig size_of(const Json& hw) {
  ImageConfig config;
  config.height = hw[0];
  config.width = hw[1];
  return config;
}

TEST_F(GoldenImageTest, TheFileHoldsAPartThatIsTested) {
  for (const ImageCase& c : cases_)
    EXPECT_TRUE(c.has("identity_table") || c.has("patch") || c.has("resize") || c.has("canvas")) << c.path;
}

TEST_F(GoldenImageTest, AnUntouchedByteSurvivesTheChain) {
  ASSERT_FALSE(with("identity_table").empty()) << "no case has an identity_table";
  for (const ImageCase* c : with("identity_table")) {
    SCOPED_TRACE(c->path);
    const auto values = c->facts["identity_table"]["values"].get<std::vector<int>>();
    ASSERT_EQ(values.size(), 256u);
    Bytes ramp;
    for (int v = 0; v < 256; ++v) ramp.insert(ramp.end(), 3, static_cast<std::uint8_t>(v));
    const ImageConfig config{.height = 16, .width = 16, .crop = 1};
    auto chain = ImageChain::make(config, "single", 1);
    Bytes out(ramp.size());
    ASSERT_TRUE(chain->run_view(0, {ramp.data(), 16, 16, 48}, centre_augmentation(config, 16, 16), out));
    for (std::size_t v = 0; v < 256; ++v) EXPECT_EQ(out[3 * v], values[v]);
  }
}

void expect_jitter(const ImageCase& c) {
  const auto input = c.tensors.at("patch/input_f32_TCHW").as<float>();
  const auto shape = c.tensors.at("patch/input_f32_TCHW").shape;
  const auto plane = static_cast<std::size_t>(shape[2] * shape[3]);
  if (c.tensors.contains("patch/input_u8")) {
    EXPECT_EQ(static_cast<float>(c.tensors.at("patch/input_u8").as<std::uint8_t>()[0]) / 255.0f, input[0]);
  }
  int compared = 0;
  for (const auto& [name, factors] : c.facts["patch"]["jitter"].items()) {
    if (!c.tensors.contains("patch/jitter/" + name)) continue;
    SCOPED_TRACE(name);
    auto got = input;
    for (std::size_t t = 0; t < static_cast<std::size_t>(shape[0]); ++t) {
      const std::span<float> frame = std::span(got).subspan(3 * t * plane, 3 * plane);
      apply_jitter(frame.subspan(0, plane), frame.subspan(plane, plane), frame.subspan(2 * plane, plane),
                   jitter_of(factors));
    }
    const auto want = c.tensors.at("patch/jitter/" + name).as<float>();
    double worst = 0;
    for (std::size_t i = 0; i < want.size(); ++i)
      worst = std::max(worst, std::abs(static_cast<double>(got[i]) - static_cast<double>(want[i])));
    EXPECT_LE(worst, kJitterTolerance);
    ++compared;
  }
  EXPECT_GT(compared, 0) << "no jitter of the patch has its tensor";
}

TEST_F(GoldenImageTest, JitterOperationsAgreeInFloat) {
  ASSERT_FALSE(with("patch").empty()) << "no case has a patch";
  for (const ImageCase* c : with("patch")) {
    SCOPED_TRACE(c->path);
    expect_jitter(*c);
  }
}

/// Path of the recording that `name`, a path below the shared data, stands for; empty, with a failure, where the shared
/// data lack it.
std::string recording(const std::string& name) {
  const std::string path = shared_data() + "/" + name;
  if (std::filesystem::exists(path)) return path;
  ADD_FAILURE() << "the recording " << name << " is not in " << shared_data();
  return {};
}

struct Resized {
  std::vector<Bytes> frames;
  Bytes sampled;  // of frame 0
};

/// Crop and resize of a case's frames as the chain does them.
Resized resize_case(const Json& c, const std::vector<Bytes>& images, std::int64_t height, std::int64_t width) {
  const ImageConfig config = size_of(c["output_hw"]);
  auto chain = ImageChain::make(config, "single", 1);
  EXPECT_TRUE(chain);
  ImageAugmentation crop = centre_augmentation(config, height, width);
  if (c["crop"]["mode"] == "centre") {
    EXPECT_EQ(crop.top, c["crop"]["top"]);
    EXPECT_EQ(crop.left, c["crop"]["left"]);
  }
  EXPECT_EQ(crop.height, c["crop"]["height"]);
  EXPECT_EQ(crop.width, c["crop"]["width"]);
  crop.top = c["crop"]["top"];
  crop.left = c["crop"]["left"];
  Resized out;
  for (const Bytes& image : images) {
    out.frames.emplace_back(static_cast<std::size_t>(chain->canvas_bytes()));
    EXPECT_TRUE(chain->run_view(0, {image.data(), height, width, 3 * width}, crop, out.frames.back()));
  }
  for (const std::int64_t row : c["sampled_pixels"]["rows"]) {
    for (const std::int64_t column : c["sampled_pixels"]["cols"]) {
      const auto* pixel = out.frames[0].data() + 3 * (row * config.width + column);
      out.sampled.insert(out.sampled.end(), pixel, pixel + 3);
    }
  }
  return out;
}

Bytes sampled_reference(const Json& c) {
  Bytes want;
  for (const auto& row : c["sampled_pixels"]["frame0"]) {
    for (const auto& pixel : row)
      want.insert(want.end(),
                  {pixel[0].get<std::uint8_t>(), pixel[1].get<std::uint8_t>(), pixel[2].get<std::uint8_t>()});
  }
  return want;
}

TEST_F(GoldenImageTest, CropAndResizeAgree) {
  if (with("resize").empty()) GTEST_SKIP() << "no case has a resize";
  for (const ImageCase* file : with("resize")) {
    for (const Json& c : file->facts["resize"])
      EXPECT_TRUE(c.contains("video")) << file->path << ": the resize case " << c["name"] << " has no key \"video\"";
  }
  if (HasFailure()) return;
  if (!std::filesystem::exists(shared_data())) GTEST_SKIP() << "no shared data at " << shared_data();
  std::int64_t exact = 0, frames = 0;
  for (const ImageCase* file : with("resize")) {
    for (const Json& c : file->facts["resize"]) {
      const std::string name = c["name"];
      SCOPED_TRACE(file->path + " " + name);
      const std::string path = recording(c["video"]);
      ASSERT_FALSE(path.empty());
      std::int64_t height = 0, width = 0;
      const auto images = decode(path, c["frames"], height, width);
      ASSERT_EQ(height, c["source_hw"][0]);
      ASSERT_EQ(width, c["source_hw"][1]);
      const Resized got = resize_case(c, images, height, width);
      expect_close(got.sampled, sampled_reference(c), kSampledShare);
      for (std::size_t i = 0; i < got.frames.size(); ++i, ++frames)
        exact += xxh64_hex(got.frames[i]) == c["u8_xxh64"][i];
      const std::string tensor = "resize/" + name + "/frame0_u8";
      if (file->tensors.contains(tensor))
        expect_close(got.frames[0], file->tensors.at(tensor).as<std::uint8_t>(), kFrameShare);
    }
  }
  ASSERT_GT(frames, 0);
  report("crop and resize", exact, frames);
}

/// Every row_step-th row and col_step-th column of a canvas, as a case records them.
Bytes sampled_canvas(const Json& c, const ImageChain& chain, const Bytes& canvas) {
  const std::int64_t row_step = c["sampled_pixels"]["row_step"], col_step = c["sampled_pixels"]["col_step"];
  Bytes got;
  for (std::int64_t y = 0; y < chain.canvas_height(); y += row_step) {
    for (std::int64_t x = 0; x < chain.canvas_width(); x += col_step) {
      const auto* pixel = canvas.data() + 3 * (y * chain.canvas_width() + x);
      got.insert(got.end(), pixel, pixel + 3);
    }
  }
  return got;
}

/// The layout of a case whose key "layout" is "CODE_BASE: TAG": that of our embodiment of this tag; of a tag without
/// one, the grid that both code bases give robots they do not know. One view is drawn alone.
std::string layout_of(const Json& c) {
  if (c["views"].size() == 1) return "single";
  const std::string layout = c["layout"];
  const auto embodiment = configs::load_embodiment(layout.substr(layout.find(": ") + 2));
  return embodiment ? embodiment->layout : "grid2x2";
}

TEST_F(GoldenImageTest, EveryCanvasAgrees) {
  if (with("canvas").empty()) GTEST_SKIP() << "no case has a canvas";
  for (const ImageCase* file : with("canvas")) {
    for (const Json& c : file->facts["canvas"]) {
      for (const Json& view : c["views"])
        EXPECT_TRUE(view.size() == 3 && view[1].is_string())
            << file->path << ": a view of the canvas case " << c["name"] << " names no video: " << view.dump();
    }
  }
  if (HasFailure()) return;
  if (!std::filesystem::exists(shared_data())) GTEST_SKIP() << "no shared data at " << shared_data();
  std::int64_t exact = 0, total = 0;
  for (const ImageCase* file : with("canvas")) {
    for (const Json& c : file->facts["canvas"]) {
      const std::string name = c["name"];
      SCOPED_TRACE(file->path + " " + name);
      std::int64_t height = 0, width = 0;
      std::vector<std::vector<Bytes>> views;
      for (const Json& view : c["views"]) {
        const std::string path = recording(view[1]);
        ASSERT_FALSE(path.empty());
        views.push_back(decode(path, view[2], height, width));
      }
      const ImageConfig config = size_of(c["per_view_hw"]);
      auto chain = ImageChain::make(config, layout_of(c), static_cast<std::int64_t>(views.size()));
      ASSERT_EQ(chain->canvas_height(), c["shape"][1]);
      ASSERT_EQ(chain->canvas_width(), c["shape"][2]);
      ImageAugmentation augmentation = centre_augmentation(config, height, width);
      if (c["crop"].is_object()) {
        augmentation.top = c["crop"]["top"];
        augmentation.left = c["crop"]["left"];
      }
      augmentation.jitter = jitter_of(c["jitter"]);
      for (std::size_t t = 0; t < c["shape"][0].get<std::size_t>(); ++t, ++total) {
        std::vector<Rgb8View> images;
        for (const auto& view : views) images.push_back({view[t].data(), height, width, 3 * width});
        Bytes canvas(static_cast<std::size_t>(chain->canvas_bytes()),
                     std::uint8_t{77});  // what is left over must be seen
        ASSERT_TRUE(chain->run(images, augmentation, canvas));
        exact += xxh64_hex(canvas) == c["u8_xxh64"][t];
        if (t == 0 && file->tensors.contains("canvas/" + name + "/frame0_u8"))
          expect_close(canvas, file->tensors.at("canvas/" + name + "/frame0_u8").as<std::uint8_t>(), kFrameShare);
        expect_close(sampled_canvas(c, *chain, canvas), c["sampled_pixels"]["values"][t].get<Bytes>(), kSampledShare);
      }
    }
  }
  ASSERT_GT(total, 0);
  report("canvases", exact, total);
}

}  // namespace
}  // namespace troupe::image
