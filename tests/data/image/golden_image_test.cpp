#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "data/image/color_jitter.h"
#include "data/image/image_chain.h"
#include "data/video/clip_decoder.h"
#include "tests/data/video/video_test_support.h"
#include "tests/support/safetensors_bytes.h"

namespace troupe::data {
namespace {

using Json = nlohmann::json;
using Bytes = std::vector<std::uint8_t>;

/// u8 tolerances of the golden folder's README: one level on at most this share of the values.
constexpr double kFrameShare = 0.01, kSampledShare = 0.05;
constexpr double kJitterTolerance = 1e-6;
/// The arithmetic of crop and resize is the reference's, step by step: most frames are equal to the last bit.
constexpr double kExactShare = 0.8;

class GoldenImageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto cases = golden_cases("image");
    const auto tensors = golden_data_folder() / "image.safetensors";
    if (cases.empty() || !std::filesystem::exists(tensors))
      GTEST_SKIP() << "no golden kind image in " << golden_data_folder();
    if (!std::filesystem::exists(shared_data_folder())) GTEST_SKIP() << "no shared data at " << shared_data_folder();
    std::ifstream in(cases.front());
    facts_ = Json::parse(in);
    tensors_.emplace(tensors.string());
  }

  /// Decoded frames of one video, packed, in the order asked for.
  std::vector<Bytes> decode(const std::string& path, const std::vector<std::int64_t>& frames, std::int64_t& height,
                            std::int64_t& width) {
    std::vector<Bytes> pictures(frames.size());
    const auto done = decoder_.read(
        path, frames,
        [&](std::size_t i, const Rgb8View& p) -> Result<void> {
          pictures[i] = packed(p);
          height = p.height;
          width = p.width;
          return {};
        },
        soon());
    EXPECT_TRUE(done) << done.error().to_string();
    return pictures;
  }

  /// A golden file may lack a part that another of its kind has.
  bool has(const char* part) const { return facts_.contains(part) && !facts_[part].empty(); }

  Json facts_;
  std::optional<SafetensorsBytes> tensors_;
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
  EXPECT_TRUE(has("identity_table") || has("patch") || has("resize") || has("canvas"));
}

TEST_F(GoldenImageTest, AnUntouchedByteSurvivesTheChain) {
  if (!has("identity_table")) GTEST_SKIP() << "the file has no identity_table";
  const auto values = facts_["identity_table"]["values"].get<std::vector<int>>();
  ASSERT_EQ(values.size(), 256u);
  Bytes ramp;
  for (int v = 0; v < 256; ++v) ramp.insert(ramp.end(), 3, static_cast<std::uint8_t>(v));
  ImageConfig config;
  config.height = 16;
  config.width = 16;
  config.crop = 1;
  auto chain = ImageChain::make(config, "single", 1);
  ASSERT_TRUE(chain);
  Bytes out(ramp.size());
  ASSERT_TRUE(chain->run_view(0, {ramp.data(), 16, 16, 48}, centre_augmentation(config, 16, 16), out));
  for (std::size_t v = 0; v < 256; ++v) EXPECT_EQ(out[3 * v], values[v]);
}

TEST_F(GoldenImageTest, JitterOperationsAgreeInFloat) {
  if (!has("patch") || !tensors_->contains("patch/input_f32_TCHW")) GTEST_SKIP() << "no patch in the files";
  const auto input = tensors_->at("patch/input_f32_TCHW").as<float>();
  const auto shape = tensors_->at("patch/input_f32_TCHW").shape;
  const auto plane = static_cast<std::size_t>(shape[2] * shape[3]);
  if (tensors_->contains("patch/input_u8")) {
    EXPECT_EQ(static_cast<float>(tensors_->at("patch/input_u8").as<std::uint8_t>()[0]) / 255.0f, input[0]);
  }
  ASSERT_FALSE(facts_["patch"]["jitter"].empty());
  for (const auto& [name, factors] : facts_["patch"]["jitter"].items()) {
    if (!tensors_->contains("patch/jitter/" + name)) continue;
    SCOPED_TRACE(name);
    auto got = input;
    for (std::size_t t = 0; t < static_cast<std::size_t>(shape[0]); ++t) {
      const std::span<float> frame = std::span(got).subspan(3 * t * plane, 3 * plane);
      apply_jitter(frame.subspan(0, plane), frame.subspan(plane, plane), frame.subspan(2 * plane, plane),
                   jitter_of(factors));
    }
    const auto want = tensors_->at("patch/jitter/" + name).as<float>();
    double worst = 0;
    for (std::size_t i = 0; i < want.size(); ++i)
      worst = std::max(worst, std::abs(static_cast<double>(got[i]) - static_cast<double>(want[i])));
    EXPECT_LE(worst, kJitterTolerance);
  }
}

struct Resized {
  std::vector<Bytes> frames;
  Bytes sampled;  // of frame 0
};

/// Crop and resize of a case's frames as the chain does them.
Resized resize_case(const Json& c, const std::vector<Bytes>& pictures, std::int64_t height, std::int64_t width) {
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
  for (const Bytes& picture : pictures) {
    out.frames.emplace_back(static_cast<std::size_t>(chain->canvas_bytes()));
    EXPECT_TRUE(chain->run_view(0, {picture.data(), height, width, 3 * width}, crop, out.frames.back()));
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

std::int64_t sum_apart(const Bytes& a, const Bytes& b) {
  std::int64_t sum = a.size() == b.size() ? 0 : 1 << 30;
  for (std::size_t i = 0; sum < 1 << 30 && i < a.size(); ++i) sum += std::abs(int{a[i]} - int{b[i]});
  return sum;
}

TEST_F(GoldenImageTest, CropAndResizeAgree) {
  if (!has("resize")) GTEST_SKIP() << "the file has no resize";
  std::int64_t exact = 0, frames = 0;
  for (const Json& c : facts_["resize"]) {
    const std::string name = c["name"];
    SCOPED_TRACE(name);
    // the file does not name the video: it is the one of that size whose samples come closest, and it must then agree
    // in full
    Resized best;
    const Bytes want = sampled_reference(c);
    for (const char* key : {"droid-views exterior_image_1_left", "droid-views exterior_image_2_left",
                            "droid-views wrist_image_left", "gr1-pick-place episode 0", "gr1-pick-place episode 3"}) {
      std::int64_t height = 0, width = 0;
      const auto pictures = decode(shared_video(key).string(), c["frames"], height, width);
      if (height != c["source_hw"][0] || width != c["source_hw"][1]) continue;
      Resized candidate = resize_case(c, pictures, height, width);
      if (best.frames.empty() || sum_apart(candidate.sampled, want) < sum_apart(best.sampled, want))
        best = std::move(candidate);
    }
    ASSERT_FALSE(best.frames.empty());
    expect_close(best.sampled, want, kSampledShare);
    for (std::size_t i = 0; i < best.frames.size(); ++i, ++frames)
      exact += xxh64_hex(best.frames[i]) == c["u8_xxh64"][i];
    const std::string tensor = "resize/" + name + "/frame0_u8";
    if (tensors_->contains(tensor)) expect_close(best.frames[0], tensors_->at(tensor).as<std::uint8_t>(), kFrameShare);
  }
  ASSERT_GT(frames, 0);
  EXPECT_GE(static_cast<double>(exact), kExactShare * static_cast<double>(frames));
  RecordProperty("bit_exact_frames", static_cast<int>(exact));
  RecordProperty("frames", static_cast<int>(frames));
}

std::string layout_of(const Json& c) {
  const std::string layout = c["layout"];
  if (c["views"].size() == 1) return "single";
  if (layout == "gear: oxe_droid" || layout == "rlinf: oxe_droid") return "droid";
  if (layout == "rlinf: libero_sim" || layout == "rlinf: franka_pnp") return "horizontal";
  return "grid2x2";
}

TEST_F(GoldenImageTest, EveryCanvasAgrees) {
  if (!has("canvas")) GTEST_SKIP() << "the file has no canvas";
  std::int64_t exact = 0, total = 0;
  for (const Json& c : facts_["canvas"]) {
    const std::string name = c["name"];
    SCOPED_TRACE(name);
    std::int64_t height = 0, width = 0;
    std::vector<std::vector<Bytes>> views;
    for (const Json& view : c["views"])
      views.push_back(decode((shared_data_folder() / view[1].get<std::string>()).string(), view[2], height, width));
    const ImageConfig config = size_of(c["per_view_hw"]);
    auto chain = ImageChain::make(config, layout_of(c), static_cast<std::int64_t>(views.size()));
    ASSERT_TRUE(chain) << chain.error().to_string();
    ASSERT_EQ(chain->canvas_height(), c["shape"][1]);
    ASSERT_EQ(chain->canvas_width(), c["shape"][2]);
    ImageAugmentation augmentation = centre_augmentation(config, height, width);
    if (c["crop"].is_object()) {
      augmentation.top = c["crop"]["top"];
      augmentation.left = c["crop"]["left"];
    }
    augmentation.jitter = jitter_of(c["jitter"]);
    Bytes got;
    const std::int64_t row_step = c["sampled_pixels"]["row_step"], col_step = c["sampled_pixels"]["col_step"];
    for (std::size_t t = 0; t < c["shape"][0].get<std::size_t>(); ++t, ++total) {
      std::vector<Rgb8View> pictures;
      for (const auto& view : views) pictures.push_back({view[t].data(), height, width, 3 * width});
      Bytes canvas(static_cast<std::size_t>(chain->canvas_bytes()),
                   std::uint8_t{77});  // what is left over must be seen
      ASSERT_TRUE(chain->run(pictures, augmentation, canvas));
      exact += xxh64_hex(canvas) == c["u8_xxh64"][t];
      if (t == 0 && tensors_->contains("canvas/" + name + "/frame0_u8")) {
        expect_close(canvas, tensors_->at("canvas/" + name + "/frame0_u8").as<std::uint8_t>(), kFrameShare);
      }
      got.clear();
      for (std::int64_t y = 0; y < chain->canvas_height(); y += row_step) {
        for (std::int64_t x = 0; x < chain->canvas_width(); x += col_step) {
          const auto* pixel = canvas.data() + 3 * (y * chain->canvas_width() + x);
          got.insert(got.end(), pixel, pixel + 3);
        }
      }
      expect_close(got, c["sampled_pixels"]["values"][t].get<Bytes>(), kSampledShare);
    }
  }
  ASSERT_GT(total, 0);
  EXPECT_GE(static_cast<double>(exact), kExactShare * static_cast<double>(total));
  RecordProperty("bit_exact_frames", static_cast<int>(exact));
  RecordProperty("frames", static_cast<int>(total));
}

}  // namespace
}  // namespace troupe::data
