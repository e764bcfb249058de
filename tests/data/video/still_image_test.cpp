#include "data/video/still_image.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "data/video/chroma_upsampling.h"
#include "data/video/ffmpeg.h"
#include "tests/support/png_bytes.h"

namespace troupe::data {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

StillImage must_decode(const std::string& file) { return decode_still_image(bytes_of(file), "cell").value(); }

std::vector<std::uint8_t> all(const std::string& text) { return {text.begin(), text.end()}; }

/// Every value of a byte, in an order that is no ramp.
std::string noise(std::size_t size) {
  std::string out(size, '\0');
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<char>(i * 167 + i / 7);
  return out;
}

TEST(StillImageTest, PngRgbIsExact) {
  const std::string rgb = noise(3 * 31 * 17);
  const StillImage image = must_decode(png_bytes(31, 17, PngColor::rgb, 8, rgb));
  EXPECT_EQ(image.width, 31);
  EXPECT_EQ(image.height, 17);
  EXPECT_EQ(image.rgb, all(rgb));
  EXPECT_EQ(image.view().row(2)[5], image.rgb[2 * 93 + 5]);
}

TEST(StillImageTest, AlphaIsDroppedAndGreyRepeated) {
  std::string rgba, rgb, grey = noise(12), grey_alpha, grey_rgb;
  for (std::size_t i = 0; i < 12; ++i) {
    const std::string pixel = noise(3 * 12).substr(3 * i, 3);
    rgb += pixel;
    rgba += pixel + static_cast<char>(i * 20);
    grey_alpha += {grey[i], static_cast<char>(255 - i)};
    grey_rgb += std::string(3, grey[i]);
  }
  EXPECT_EQ(must_decode(png_bytes(4, 3, PngColor::rgba, 8, rgba)).rgb, all(rgb));
  EXPECT_EQ(must_decode(png_bytes(4, 3, PngColor::grey, 8, grey)).rgb, all(grey_rgb));
  EXPECT_EQ(must_decode(png_bytes(4, 3, PngColor::grey_alpha, 8, grey_alpha)).rgb, all(grey_rgb));
}

TEST(StillImageTest, PalettesAndBitsAreLookedUp) {
  const std::string palette = noise(3 * 4);
  const std::string rows = {0b00011011, static_cast<char>(0b11100100)};  // 0 1 2 3 / 3 2 1 0
  std::string want;
  for (const int i : {0, 1, 2, 3, 3, 2, 1, 0}) want += palette.substr(static_cast<std::size_t>(3 * i), 3);
  EXPECT_EQ(must_decode(png_bytes(4, 2, PngColor::palette, 2, rows, palette)).rgb, all(want));
  const StillImage bits =
      must_decode(png_bytes(10, 1, PngColor::grey, 1, {static_cast<char>(0b10010011), static_cast<char>(0b01000000)}));
  std::vector<std::uint8_t> expected;
  for (const int bit : {1, 0, 0, 1, 0, 0, 1, 1, 0, 1})
    expected.insert(expected.end(), 3, static_cast<std::uint8_t>(255 * bit));
  EXPECT_EQ(bits.rgb, expected);
}

TEST(StillImageTest, SixteenBitsAreRefusedByName) {
  for (const auto& [color, samples, name] :
       {std::tuple{PngColor::rgb, 3, "rgb48"}, {PngColor::grey, 1, "gray16"}, {PngColor::rgba, 4, "rgba64"}}) {
    const auto image = decode_still_image(
        bytes_of(png_bytes(2, 2, color, 16, noise(static_cast<std::size_t>(8 * samples)))), "t row 3");
    EXPECT_EQ(image.error().code(), Errc::invalid_argument);
    EXPECT_EQ(image.error().message().rfind(std::string("t row 3: ") + name, 0), 0u) << image.error().message();
  }
}

TEST(StillImageTest, DamageIsDataLoss) {
  const std::string good = png_bytes(31, 17, PngColor::rgb, 8, noise(3 * 31 * 17));
  std::string flipped = good;
  flipped[good.size() / 2] = static_cast<char>(flipped[good.size() / 2] ^ 1);  // the checksum no longer fits
  for (const std::string& bad : {good.substr(0, good.size() / 2), good.substr(0, 40), flipped}) {
    const auto image = decode_still_image(bytes_of(bad), "cell");
    ASSERT_FALSE(image) << bad.size();
    EXPECT_EQ(image.error().code(), Errc::data_loss);
    EXPECT_EQ(image.error().message().rfind("cell: ", 0), 0u);
  }
  for (const std::string& other : {std::string(), std::string("GIF89a....."), std::string("\xFF\xD8")}) {
    EXPECT_EQ(decode_still_image(bytes_of(other), "cell").error().code(), Errc::invalid_argument);
  }
}

TEST(StillImageTest, ADecoderGoesOnAfterDamage) {
  StillImageDecoder decoder;
  StillImage image;
  const std::string good = png_bytes(5, 4, PngColor::rgb, 8, noise(60));
  EXPECT_FALSE(decoder.decode(bytes_of(good.substr(0, 50)), "cell", image));
  ASSERT_TRUE(decoder.decode(bytes_of(good), "cell", image));
  EXPECT_EQ(image.rgb, all(noise(60)));
}

TEST(StillImageTest, AHugeSizeIsRefusedBeforeMemoryIsTaken) {
  const auto image =
      decode_still_image(bytes_of(png_bytes(60000, 1, PngColor::grey, 8, std::string(60000, 'x'))), "cell");
  EXPECT_TRUE(image) << image.error().message();
  std::string huge = png_bytes(1, 1, PngColor::grey, 8, "x");
  std::string header = huge.substr(12, 17);
  std::memcpy(header.data() + 4, "\x00\x01\x00\x00\x00\x01\x00\x00", 8);  // 65536 x 65536
  std::string crc;
  testing::png::put_u32(crc, testing::png::crc32(header));
  huge.replace(12, 17, header).replace(29, 4, crc);
  EXPECT_FALSE(decode_still_image(bytes_of(huge), "cell"));
}

/// A smooth image, so that the codec's loss is small.
std::vector<std::uint8_t> smooth(int width, int height) {
  std::vector<std::uint8_t> rgb;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (const double phase : {0.0, 2.0, 4.0})
        rgb.push_back(static_cast<std::uint8_t>(128 + 90 * std::sin(0.11 * x + 0.07 * y + phase)));
    }
  }
  return rgb;
}

/// Codes an image as JPEG of the best quality.
std::string jpeg_bytes(const std::vector<std::uint8_t>& rgb, int width, int height, AVPixelFormat format) {
  const AVCodec* codec = avcodec_find_encoder(AV_CODEC_ID_MJPEG);
  AvCodecContext context(avcodec_alloc_context3(codec));
  context->width = width;
  context->height = height;
  context->time_base = {1, 25};
  context->pix_fmt = format;
  context->flags |= AV_CODEC_FLAG_QSCALE;
  context->global_quality = FF_QP2LAMBDA;
  if (avcodec_open2(context.get(), codec, nullptr) < 0) return {};
  AvFrame frame(av_frame_alloc());
  frame->width = width;
  frame->height = height;
  frame->format = format;
  frame->quality = FF_QP2LAMBDA;
  av_frame_get_buffer(frame.get(), 0);
  const int dx = format == AV_PIX_FMT_YUVJ444P ? 1 : 2, dy = format == AV_PIX_FMT_YUVJ420P ? 2 : 1;
  const auto at = [&](int x, int y, int c) {
    return static_cast<double>(rgb[static_cast<std::size_t>(3 * (y * width + x) + c)]);
  };
  for (int plane = 0; plane < 3; ++plane) {
    const int sx = plane == 0 ? 1 : dx, sy = plane == 0 ? 1 : dy;
    for (int y = 0; y * sy < height; ++y) {
      for (int x = 0; x * sx < width; ++x) {
        double sum = 0;
        int count = 0;
        for (int j = y * sy; j < std::min(height, (y + 1) * sy); ++j) {
          for (int i = x * sx; i < std::min(width, (x + 1) * sx); ++i, ++count) {
            const double r = at(i, j, 0), g = at(i, j, 1), b = at(i, j, 2);
            const double value[] = {0.299 * r + 0.587 * g + 0.114 * b, 128 - 0.168736 * r - 0.331264 * g + 0.5 * b,
                                    128 + 0.5 * r - 0.418688 * g - 0.081312 * b};
            sum += value[plane];
          }
        }
        frame->data[plane][y * frame->linesize[plane] + x] = static_cast<std::uint8_t>(std::lround(sum / count));
      }
    }
  }
  AvPacket packet(av_packet_alloc());
  if (avcodec_send_frame(context.get(), frame.get()) < 0 || avcodec_receive_packet(context.get(), packet.get()) < 0)
    return {};
  return {reinterpret_cast<const char*>(packet->data), static_cast<std::size_t>(packet->size)};
}

TEST(StillImageTest, JpegOfEverySubsamplingComesBackWithinItsLoss) {
  for (const AVPixelFormat format : {AV_PIX_FMT_YUVJ444P, AV_PIX_FMT_YUVJ422P, AV_PIX_FMT_YUVJ420P}) {
    for (const auto& [width, height] : {std::pair{64, 48}, std::pair{37, 23}}) {
      const auto rgb = smooth(width, height);
      const std::string file = jpeg_bytes(rgb, width, height, format);
      ASSERT_FALSE(file.empty());
      const StillImage image = must_decode(file);
      ASSERT_EQ(image.rgb.size(), rgb.size());
      int worst = 0;
      double sum = 0;
      for (std::size_t i = 0; i < rgb.size(); ++i) {
        worst = std::max(worst, std::abs(image.rgb[i] - rgb[i]));
        sum += std::abs(image.rgb[i] - rgb[i]);
      }
      EXPECT_LE(worst, 12) << format << " " << width;  // edges repeat: the wave's slope times half a chroma sample
      EXPECT_LE(sum / static_cast<double>(rgb.size()), 1.6) << format << " " << width;
      const auto cut = decode_still_image(bytes_of(file.substr(0, file.size() * 2 / 3)), "cell");
      EXPECT_EQ(cut.error().code(), Errc::data_loss);
    }
  }
}

TEST(ChromaUpsamplingTest, WeightsAreThreeQuartersAndOneQuarter) {
  const std::vector<std::uint8_t> luma(8, 0), blue = {128, 128}, red = {128, 228};
  const PlanarFrame row{.planes = {luma.data(), blue.data(), red.data()},
                        .strides = {4, 2, 2},
                        .height = 1,
                        .width = 4,
                        .half_width = true,
                        .half_height = false};
  std::vector<std::uint8_t> rgb(12);
  full_range_to_rgb(row, rgb);
  for (std::size_t x = 0; x < 4; ++x) {
    const double cr = std::array{0.0, 25.0, 75.0, 100.0}[x];
    EXPECT_NEAR(rgb[3 * x], 1.402 * cr, 1.5) << x;
  }
  const std::vector<std::uint8_t> flat = {100, 100, 100, 100};
  const std::vector<std::uint8_t> b = {90}, r = {200};
  const PlanarFrame pixel{.planes = {flat.data(), b.data(), r.data()},
                          .strides = {2, 1, 1},
                          .height = 2,
                          .width = 2,
                          .half_width = true,
                          .half_height = true};
  rgb.assign(12, 0);
  full_range_to_rgb(pixel, rgb);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(rgb[3 * i], 201);
    EXPECT_EQ(rgb[3 * i + 1], 62);
    EXPECT_EQ(rgb[3 * i + 2], 33);
  }
}

}  // namespace
}  // namespace troupe::data
