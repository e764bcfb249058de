#include "image/yuv_to_rgb.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace troupe::image {
namespace {

struct Image {
  std::int64_t height, width;
  std::vector<std::uint8_t> y, u, v;
  Image(std::int64_t h, std::int64_t w)
      : height(h),
        width(w),
        y(static_cast<std::size_t>(h * w)),
        u(static_cast<std::size_t>((h + 1) / 2 * ((w + 1) / 2))),
        v(u.size()) {}
  Yuv420View view(ColorMatrix matrix = ColorMatrix::bt601, bool full = false) const {
    const std::ptrdiff_t chroma = (width + 1) / 2;
    return {y.data(), u.data(), v.data(), width, chroma, chroma, height, width, matrix, full};
  }
};

std::vector<std::uint8_t> convert(const Yuv420View& view) {
  std::vector<std::uint8_t> rgb(static_cast<std::size_t>(3 * view.height * view.width));
  yuv420_to_rgb(view, rgb.data(), 3 * view.width);
  return rgb;
}

Image filled(std::uint8_t y, std::uint8_t u, std::uint8_t v) {
  Image p(2, 2);
  std::fill(p.y.begin(), p.y.end(), y);
  std::fill(p.u.begin(), p.u.end(), u);
  std::fill(p.v.begin(), p.v.end(), v);
  return p;
}

TEST(YuvToRgbTest, LimitedRangeBlackAndWhiteReachTheEnds) {
  EXPECT_EQ(convert(filled(16, 128, 128).view())[0], 0);
  EXPECT_EQ(convert(filled(235, 128, 128).view())[1], 255);
  EXPECT_EQ(convert(filled(255, 128, 128).view())[2], 255);
}

TEST(YuvToRgbTest, FullRangeGrayIsItself) {
  for (int level = 0; level < 256; ++level) {
    const auto rgb = convert(filled(static_cast<std::uint8_t>(level), 128, 128).view(ColorMatrix::bt709, true));
    EXPECT_EQ(rgb[0], level);
    EXPECT_EQ(rgb[2], level);
  }
}

// The textbook formula in floating point; truncation in three places keeps the integer rule within three levels of it.
TEST(YuvToRgbTest, EveryMatrixAndRangeStaysWithinThreeLevelsOfTheTextbook) {
  for (const auto matrix : {ColorMatrix::bt601, ColorMatrix::bt709}) {
    const double kr = matrix == ColorMatrix::bt601 ? 0.299 : 0.2126, kb = matrix == ColorMatrix::bt601 ? 0.114 : 0.0722;
    for (const bool full : {false, true}) {
      for (int y = 0; y < 256; y += 15) {
        for (int u = 0; u < 256; u += 17) {
          for (int v = 0; v < 256; v += 17) {
            const double luma = full ? y : (y - 16) * 255.0 / 219, scale = full ? 1 : 255.0 / 224;
            const double cb = (u - 128) * scale, cr = (v - 128) * scale;
            const double r = luma + 2 * (1 - kr) * cr, b = luma + 2 * (1 - kb) * cb;
            const double g = (luma - kr * r - kb * b) / (1 - kr - kb);
            const auto got =
                convert(filled(static_cast<std::uint8_t>(y), static_cast<std::uint8_t>(u), static_cast<std::uint8_t>(v))
                            .view(matrix, full));
            const double want[3] = {r, g, b};
            for (std::size_t c = 0; c < 3; ++c) {
              ASSERT_NEAR(got[c], std::clamp(want[c], 0.0, 255.0), 3.0)
                  << "yuv " << y << " " << u << " " << v << " full " << full;
            }
          }
        }
      }
    }
  }
}

TEST(YuvToRgbTest, ABlockOfFourSharesItsChromaAlsoAtOddEdges) {
  Image p(5, 7);
  std::fill(p.y.begin(), p.y.end(), std::uint8_t{128});
  for (std::size_t i = 0; i < p.u.size(); ++i) p.u[i] = p.v[i] = static_cast<std::uint8_t>(60 + 13 * i);
  const auto rgb = convert(p.view());
  for (std::int64_t y = 0; y < 5; ++y) {
    for (std::int64_t x = 0; x < 7; ++x) {
      const auto here = static_cast<std::size_t>(3 * (y * 7 + x)),
                 first = static_cast<std::size_t>(3 * (y / 2 * 2 * 7 + x / 2 * 2));
      EXPECT_EQ(std::vector(rgb.begin() + static_cast<std::ptrdiff_t>(here),
                            rgb.begin() + static_cast<std::ptrdiff_t>(here) + 3),
                std::vector(rgb.begin() + static_cast<std::ptrdiff_t>(first),
                            rgb.begin() + static_cast<std::ptrdiff_t>(first) + 3));
    }
  }
}

TEST(YuvToRgbTest, RowsAreWrittenAtTheStrideAndNothingElseIsTouched) {
  const Image p(4, 3);
  std::vector<std::uint8_t> rgb(4 * 20, 99);
  yuv420_to_rgb(p.view(), rgb.data(), 20);
  for (std::size_t y = 0; y < 4; ++y) {
    for (std::size_t x = 9; x < 20; ++x) EXPECT_EQ(rgb[20 * y + x], 99);
  }
}

TEST(YuvToRgbTest, EncodingAndDecodingAFlatColourComesBack) {
  const std::uint8_t colors[][3] = {{0, 0, 0},     {255, 255, 255}, {220, 40, 40},
                                    {20, 200, 90}, {40, 80, 230},   {127, 128, 129}};
  for (const auto& color : colors) {
    std::vector<std::uint8_t> rgb;
    for (int i = 0; i < 16; ++i) rgb.insert(rgb.end(), color, color + 3);
    Image p(4, 4);
    rgb_to_yuv420({rgb.data(), 4, 4, 12}, p.y.data(), 4, p.u.data(), 2, p.v.data(), 2);
    const auto back = convert(p.view());
    for (std::size_t c = 0; c < 3; ++c) EXPECT_NEAR(back[c], color[c], 4);
  }
}

}  // namespace
}  // namespace troupe::image
