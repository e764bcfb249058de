#include "image/image_chain.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "image/color_jitter.h"

namespace troupe::image {
namespace {

using Bytes = std::vector<std::uint8_t>;

ImageConfig config_of(std::int64_t height, std::int64_t width, double crop = 1) {
  return {.height = height, .width = width, .crop = crop};
}

Bytes flat(std::int64_t height, std::int64_t width, std::uint8_t level) {
  return Bytes(static_cast<std::size_t>(3 * height * width), level);
}

Bytes ramp(std::int64_t height, std::int64_t width) {
  Bytes bytes;
  for (std::int64_t i = 0; i < 3 * height * width; ++i) bytes.push_back(static_cast<std::uint8_t>((i * 37) % 251));
  return bytes;
}

TEST(ImageChainTest, CentreCropRoundsHalvesToEven) {
  const auto check = [](std::int64_t h, std::int64_t w, std::int64_t top, std::int64_t left) {
    const auto a = centre_augmentation(config_of(2, 2, 0.95), h, w);
    EXPECT_EQ(a.top, top);
    EXPECT_EQ(a.left, left);
    EXPECT_EQ(a.jitter.operations, 0);
  };
  check(180, 320, 4, 8);  // margins 9 and 16
  check(480, 640, 12, 16);
  check(256, 256, 6, 6);  // margin 13
}

TEST(ImageChainTest, AugmentationDependsOnSeedAndPositionOnly) {
  const auto config = config_of(8, 8, 0.5);
  const auto a = draw_augmentation(7, 1000, config, 64, 64), b = draw_augmentation(7, 1000, config, 64, 64);
  EXPECT_EQ(a.top, b.top);
  EXPECT_EQ(a.jitter.order, b.jitter.order);
  EXPECT_EQ(a.jitter.hue_shift, b.jitter.hue_shift);
  const auto c = draw_augmentation(7, 1001, config, 64, 64), d = draw_augmentation(8, 1000, config, 64, 64);
  EXPECT_NE(a.jitter.brightness_factor, c.jitter.brightness_factor);
  EXPECT_NE(a.jitter.brightness_factor, d.jitter.brightness_factor);
}

TEST(ImageChainTest, DrawsFillTheirRanges) {
  const auto config = config_of(8, 8, 0.95);
  std::set<std::int64_t> tops;
  std::map<std::array<std::uint8_t, 4>, int> orders;
  double low = 9, high = 0;
  for (std::uint64_t n = 0; n < 4800; ++n) {
    const auto a = draw_augmentation(1, n, config, 180, 320);
    ASSERT_GE(a.top, 0);
    ASSERT_LE(a.top, 9);
    ASSERT_LE(a.left, 16);
    ASSERT_LE(std::abs(a.jitter.hue_shift), 0.08);
    tops.insert(a.top);
    ++orders[a.jitter.order];
    low = std::min(low, a.jitter.contrast_factor);
    high = std::max(high, a.jitter.contrast_factor);
  }
  EXPECT_EQ(tops.size(), 10u);
  EXPECT_EQ(orders.size(), 24u);
  for (const auto& [order, count] : orders) EXPECT_NEAR(count, 200, 85);  // six standard deviations
  EXPECT_NEAR(low, 0.6, 0.01);
  EXPECT_NEAR(high, 1.4, 0.01);
}

TEST(ImageChainTest, ARangeOfZeroLeavesItsOperationOut) {
  auto config = config_of(8, 8);
  config.hue = 0;
  config.brightness = 0;
  const auto a = draw_augmentation(3, 5, config, 8, 8);
  EXPECT_EQ(a.jitter.operations, 2);
  for (std::int64_t i = 0; i < 2; ++i) {
    const auto op = a.jitter.order[static_cast<std::size_t>(i)];
    EXPECT_TRUE(op == ColorJitter::contrast || op == ColorJitter::saturation);
  }
}

TEST(ImageChainTest, ResizeWeightsSumToOneAndCoverTheImage) {
  for (const auto& [in, out] :
       {std::pair<std::int64_t, std::int64_t>{171, 176}, {456, 176}, {608, 320}, {7, 7}, {5, 1}, {1, 9}}) {
    const AxisWeights axis(in, out);
    std::vector<double> used(static_cast<std::size_t>(in));
    for (const ResizeTaps& t : axis.taps) {
      ASSERT_GE(t.first, 0);
      ASSERT_GT(t.count, 0);
      ASSERT_LE(t.first + t.count, in);
      double sum = 0;
      for (std::int64_t k = 0; k < t.count; ++k) {
        const double w = static_cast<double>(axis.weights[static_cast<std::size_t>(t.weight + k)]);
        sum += w;
        used[static_cast<std::size_t>(t.first + k)] += w;
      }
      EXPECT_NEAR(sum, 1, 1e-6);
    }
    for (const double u : used) EXPECT_GT(u, 0) << in << " to " << out;
  }
}

TEST(ImageChainTest, ANarrowingResizeAveragesRatherThanPicks) {
  Bytes stripes;
  for (int i = 0; i < 64; ++i) stripes.insert(stripes.end(), 3, static_cast<std::uint8_t>(i % 2 * 255));
  auto chain = ImageChain::make(config_of(2, 2), "single", 1);
  Bytes out(12);
  ASSERT_TRUE(chain->run_view(0, {stripes.data(), 8, 8, 24}, centre_augmentation(config_of(2, 2), 8, 8), out));
  for (const auto v : out) EXPECT_NEAR(v, 127, 16);
}

struct LayoutCase {
  const char* layout;
  std::int64_t views, height, width;
  std::vector<std::int64_t> quarters;  // view seen at top left, top right, bottom left, bottom right; -1 black
};
void PrintTo(const LayoutCase& c, std::ostream* out) { *out << c.layout << " " << c.views; }

class CanvasLayoutTest : public ::testing::TestWithParam<LayoutCase> {};

TEST_P(CanvasLayoutTest, EveryViewLiesWhereTheReferencePutsIt) {
  const auto& c = GetParam();
  auto chain = ImageChain::make(config_of(4, 6), c.layout, c.views);
  ASSERT_EQ(chain->canvas_height(), c.height);
  ASSERT_EQ(chain->canvas_width(), c.width);
  std::vector<Bytes> images;
  std::vector<Rgb8View> views;
  for (std::int64_t v = 0; v < c.views; ++v) images.push_back(flat(4, 6, static_cast<std::uint8_t>(50 + 50 * v)));
  for (const Bytes& p : images) views.push_back({p.data(), 4, 6, 18});
  Bytes canvas(static_cast<std::size_t>(chain->canvas_bytes()), std::uint8_t{9});
  ASSERT_TRUE(chain->run(views, centre_augmentation(config_of(4, 6), 4, 6), canvas));
  const std::int64_t rows[] = {0, c.height - 1}, columns[] = {0, c.width - 1};
  for (std::size_t q = 0; q < 4; ++q) {
    const auto at = static_cast<std::size_t>(3 * (rows[q / 2] * c.width + columns[q % 2]));
    EXPECT_EQ(canvas[at], c.quarters[q] < 0 ? 0 : 50 + 50 * c.quarters[q]) << "quarter " << q;
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, CanvasLayoutTest,
                         ::testing::Values(LayoutCase{"single", 1, 4, 6, {0, 0, 0, 0}},
                                           LayoutCase{"horizontal", 2, 4, 12, {0, 1, 0, 1}},
                                           LayoutCase{"droid", 3, 8, 12, {2, 2, 0, 1}},
                                           LayoutCase{"grid2x2", 2, 8, 12, {0, -1, 1, -1}},
                                           LayoutCase{"grid2x2", 3, 8, 12, {0, 2, 1, -1}}));

TEST(ImageChainTest, TheDroidWristRepeatsEachColumnTwice) {
  auto chain = ImageChain::make(config_of(4, 6), "droid", 3);
  const Bytes wrist = ramp(4, 6), other = flat(4, 6, 1);
  const Rgb8View views[] = {{other.data(), 4, 6, 18}, {other.data(), 4, 6, 18}, {wrist.data(), 4, 6, 18}};
  Bytes canvas(static_cast<std::size_t>(chain->canvas_bytes()));
  ASSERT_TRUE(chain->run(views, centre_augmentation(config_of(4, 6), 4, 6), canvas));
  for (std::size_t y = 0; y < 4; ++y) {
    for (std::size_t x = 0; x < 12; ++x) EXPECT_EQ(canvas[3 * (12 * y + x)], wrist[3 * (6 * y + x / 2)]);
  }
}

TEST(ImageChainTest, MeanOfContrastIsThatOfTheFrame) {
  // a dark and a bright frame: with contrast 0 each becomes its own gray
  ColorJitter jitter;
  jitter.order[0] = ColorJitter::contrast;
  jitter.operations = 1;
  jitter.contrast_factor = 0;
  for (const float level : {0.2f, 0.8f}) {
    std::vector<float> r(64, level), g(64, level), b(64, level);
    r[0] = 1;
    apply_jitter(r, g, b, jitter);
    EXPECT_NEAR(r[5], level * 0.9999f + 0.2989f * (1 - level) / 64, 1e-6f);
    EXPECT_FLOAT_EQ(r[0], r[5]);
  }
}

TEST(ImageChainTest, WhatDoesNotFitIsRefusedWithTheReason) {
  EXPECT_EQ(ImageChain::make(config_of(4, 4), "droid", 2).error().code(), Errc::invalid_argument);
  EXPECT_EQ(ImageChain::make(config_of(4, 4), "mosaic", 1).error().code(), Errc::invalid_argument);
  auto chain = ImageChain::make(config_of(4, 4), "horizontal", 2);
  const Bytes small = flat(4, 4, 0), large = flat(6, 6, 0);
  const Rgb8View views[] = {{small.data(), 4, 4, 12}, {large.data(), 6, 6, 18}};
  Bytes canvas(static_cast<std::size_t>(chain->canvas_bytes()));
  EXPECT_EQ(chain->run(views, centre_augmentation(config_of(4, 4), 4, 4), canvas).error().code(),
            Errc::invalid_argument);
  const ImageAugmentation outside{.top = 2, .left = 0, .height = 4, .width = 4};
  EXPECT_EQ(chain->run_view(0, views[0], outside, canvas).error().code(), Errc::invalid_argument);
  Bytes wrong(5);
  EXPECT_EQ(chain->run_view(0, views[0], centre_augmentation(config_of(4, 4), 4, 4), wrong).error().code(),
            Errc::invalid_argument);
}

}  // namespace
}  // namespace troupe::image
