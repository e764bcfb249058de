#include "image/tile_pass.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "image/image_chain.h"
#include "image/yuv_to_rgb.h"
#include "tests/image/scalar_chain.h"

namespace troupe::image {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// A random planar image with rows longer than its width.
struct Image {
  std::int64_t height, width, stride, chroma_stride;
  Bytes y, u, v;
  Image(std::int64_t h, std::int64_t w, std::uint32_t seed)
      : height(h), width(w), stride(w + 5), chroma_stride((w + 1) / 2 + 3) {
    std::mt19937 random(seed);
    // smooth enough that an image has flat areas, where one ulp decides about a level
    const auto fill = [&](Bytes& plane, std::int64_t bytes) {
      int level = 128;
      for (std::int64_t i = 0; i < bytes; ++i) {
        if (random() % 8 == 0) level = static_cast<int>(random() % 256);
        plane.push_back(static_cast<std::uint8_t>(level));
      }
    };
    fill(y, h * stride);
    fill(u, (h + 1) / 2 * chroma_stride);
    fill(v, (h + 1) / 2 * chroma_stride);
  }
  Yuv420View view(ColorMatrix matrix = ColorMatrix::bt601, bool full = false) const {
    return {y.data(), u.data(), v.data(), stride, chroma_stride, chroma_stride, height, width, matrix, full};
  }
};

ImageConfig config_of(std::int64_t height, std::int64_t width, double crop = 0.95) {
  return {.height = height, .width = width, .crop = crop};
}

struct Case {
  std::int64_t in_height, in_width, out_height, out_width;
  double crop;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.in_height << "x" << c.in_width << " to " << c.out_height << "x" << c.out_width << " crop " << c.crop;
}

class TilePassTest : public ::testing::TestWithParam<Case> {
 protected:
  ImageConfig config() const { return config_of(GetParam().out_height, GetParam().out_width, GetParam().crop); }
  /// Augmentations with every order of the operations, and crops at even and odd places.
  ImageAugmentation augmentation(std::uint64_t n) const {
    return draw_augmentation(11, n, config(), GetParam().in_height, GetParam().in_width);
  }
  Bytes run(const TileRows& rows, const auto& image, const ImageAugmentation& a) const {
    auto chain = ImageChain::make(config(), "single", 1, rows);
    EXPECT_TRUE(chain);
    Bytes canvas(static_cast<std::size_t>(chain->canvas_bytes()), std::uint8_t{77});
    EXPECT_TRUE(chain->run_view(0, image, a, canvas));
    return canvas;
  }
};

TEST_P(TilePassTest, PlanesGiveTheBytesOfConvertedImages) {
  const Image p(GetParam().in_height, GetParam().in_width, 3);
  for (const auto matrix : {ColorMatrix::bt601, ColorMatrix::bt709}) {
    for (const bool full : {false, true}) {
      const Yuv420View yuv = p.view(matrix, full);
      Bytes rgb(static_cast<std::size_t>(3 * p.width * p.height));
      yuv420_to_rgb(yuv, rgb.data(), 3 * p.width);
      for (std::uint64_t n = 0; n < 4; ++n) {
        const TileRows& rows = *tile_rows().front();
        EXPECT_EQ(run(rows, yuv, augmentation(n)),
                  run(rows, Rgb8View{rgb.data(), p.height, p.width, 3 * p.width}, augmentation(n)));
      }
    }
  }
}

TEST_P(TilePassTest, EveryInstructionSetGivesTheSameBytes) {
  const Image p(GetParam().in_height, GetParam().in_width, 4);
  for (std::uint64_t n = 0; n < 6; ++n) {
    const Bytes want = run(*tile_rows().back(), p.view(), augmentation(n));
    for (const TileRows* rows : tile_rows()) EXPECT_EQ(run(*rows, p.view(), augmentation(n)), want) << rows->name;
  }
}

TEST_P(TilePassTest, TheFunctionsOfThePixelGiveTheSameBytesButForTheMeanOfTheContrast) {
  const Image p(GetParam().in_height, GetParam().in_width, 5);
  for (std::uint64_t n = 0; n < 24; ++n) {
    ImageAugmentation a = augmentation(n);
    if (n % 4 == 3) {  // without the contrast, whose mean is summed in another order
      std::int64_t kept = 0;
      for (const std::uint8_t op : a.jitter.order) {
        if (op != ColorJitter::contrast) a.jitter.order[static_cast<std::size_t>(kept++)] = op;
      }
      a.jitter.operations = kept;
    }
    const Bytes got = run(*tile_rows().front(), p.view(), a);
    Bytes want(got.size());
    run_scalar_chain(p.view(), a, {}, GetParam().out_height, GetParam().out_width, GetParam().out_width, want.data());
    std::size_t different = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_LE(std::abs(int{got[i]} - int{want[i]}), 1) << "order " << n << " byte " << i;
      different += got[i] != want[i];
    }
    EXPECT_LE(different, n % 4 == 3 ? 0 : got.size() / 1000 + 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, TilePassTest,
                         ::testing::Values(Case{180, 320, 176, 320, 0.95},
                                           Case{121, 161, 44, 80, 0.95},  // narrowing, odd planes
                                           Case{64, 301, 20, 33, 1.0},    // by nine: single loads
                                           Case{7, 5, 9, 13, 0.8}, Case{1, 1, 2, 3, 1.0}, Case{33, 47, 33, 47, 1.0},
                                           Case{24, 24, 50, 77, 0.5}));

TEST(TileRowsTest, LevelsAreRoundedAsADivisionRoundsThem) {
  Bytes levels;
  for (int v = 0; v < 256; ++v) levels.insert(levels.end(), 3, static_cast<std::uint8_t>(v));
  for (const TileRows* rows : tile_rows()) {
    std::vector<float> planes(3 * 256);
    rows->from_rgb(levels.data(), 256, {planes.data(), 256});
    for (int v = 0; v < 256; ++v)
      EXPECT_EQ(planes[static_cast<std::size_t>(v)], unit_of_level(v)) << rows->name << " " << v;
  }
}

TEST(TileRowsTest, SumsRoundOnce) {
  std::mt19937 random(9);
  std::uniform_real_distribution<float> unit(0, 1);
  std::vector<float> a, b;
  for (int i = 0; i < 40000; ++i) {
    a.push_back(unit(random));
    // every fourth sum nearly cancels or ends halfway between two floats
    b.push_back(i % 4 == 0 ? -a.back() : i % 4 == 1 ? std::ldexp(1.0f, -24) : unit(random));
  }
  for (const TileRows* rows : tile_rows()) {
    for (const float weight : {0.25f, 0.3333333f, 0.7f, 1.0f}) {
      const float weights[] = {1 - weight, weight};
      const float* lines[] = {a.data(), b.data()};
      std::vector<float> out(a.size());
      rows->mix(lines, weights, 2, static_cast<std::int64_t>(a.size()), out.data());
      for (std::size_t i = 0; i < a.size(); ++i) {
        ASSERT_EQ(out[i], std::fmaf(b[i], weights[1], a[i] * weights[0])) << rows->name << " " << i;
      }
    }
  }
}

TEST(TileRowsTest, NothingPastTheTileIsWritten) {
  const Image p(20, 30, 6);
  const ImageConfig config = config_of(12, 18);
  for (const TileRows* rows : tile_rows()) {
    for (const std::int64_t repeat : {1, 2, 3}) {
      const ImageAugmentation a = draw_augmentation(1, 2, config, 20, 30);
      TilePass pass(*rows, a.height, a.width, 12, 18);
      const std::int64_t canvas_width = 18 * repeat + 10;
      Bytes canvas(static_cast<std::size_t>(3 * 16 * canvas_width), std::uint8_t{99});
      pass.run(p.view(), a, {.row = 2, .column = 4, .repeat = repeat}, canvas_width, canvas.data());
      Bytes want(canvas.size(), std::uint8_t{99});
      ImageAugmentation same = a;
      run_scalar_chain(p.view(), same, {.row = 2, .column = 4, .repeat = repeat}, 12, 18, canvas_width, want.data());
      for (std::size_t i = 0; i < canvas.size(); ++i) {
        ASSERT_LE(std::abs(int{canvas[i]} - int{want[i]}), 1) << rows->name << " repeat " << repeat << " byte " << i;
      }
    }
  }
}

TEST(TileCropTest, AWindowMovesWithItsCrop) {
  // a single white block of 2x2 pixels is found where the crop says, at odd and even places
  for (const std::int64_t left : {0, 1, 2, 3}) {
    Image p(8, 12, 1);
    for (auto* plane : {&p.u, &p.v}) std::fill(plane->begin(), plane->end(), std::uint8_t{128});
    std::fill(p.y.begin(), p.y.end(), std::uint8_t{16});
    for (const std::int64_t at : {4 * p.stride + 4, 4 * p.stride + 5, 5 * p.stride + 4, 5 * p.stride + 5}) {
      p.y[static_cast<std::size_t>(at)] = 235;
    }
    TilePass pass(*tile_rows().front(), 6, 8, 6, 8);
    Bytes out(3 * 6 * 8);
    pass.run(p.view(), {.top = 1, .left = left, .height = 6, .width = 8}, {}, 8, out.data());
    for (std::int64_t y = 0; y < 6; ++y) {
      for (std::int64_t x = 0; x < 8; ++x) {
        const bool white = (y + 1) / 2 == 2 && (x + left) / 2 == 2;
        EXPECT_EQ(out[static_cast<std::size_t>(3 * (8 * y + x) + 1)], white ? 255 : 0)
            << "left " << left << " at " << y << "," << x;
      }
    }
  }
}

}  // namespace
}  // namespace troupe::image
