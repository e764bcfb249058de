// kernels/image_chain.cu whole, interpreted, against its host form: the same bits and no finding.
#include <cstring>
#include <random>

#include "tests/device/ptx/session.h"
#include "tests/image/scalar_chain.h"

namespace troupe::device::ptx {
namespace {

using namespace troupe::image;

constexpr std::int64_t kHeight = 36, kWidth = 64, kBlock = 256;

std::vector<std::uint8_t> random_planes(std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> planes;
  int level = 128;
  for (std::int64_t i = 0; i < kHeight * kWidth * 3 / 2; ++i) {
    if (random() % 8 == 0) level = static_cast<int>(random() % 256);
    planes.push_back(static_cast<std::uint8_t>(level));
  }
  return planes;
}

Yuv420View view_of(const std::uint8_t* planes) {
  return {planes, planes + kHeight * kWidth, planes + kHeight * kWidth * 5 / 4, kWidth, kWidth / 2, kWidth / 2, kHeight,
          kWidth};
}

/// The parts of image_chain.cu's scratch memory.
struct Scratch {
  float* planes;
  double* partial;
  double* gray_sum;
};

class ImageChainTest : public ::testing::Test {
 protected:
  ImageChainTest() : session(Session::read(std::string(TROUPE_PTX_FOLDER) + "/image_chain.sm_80.ptx")) {}

  void expect_clean(const LaunchResult& result) {
    EXPECT_TRUE(result.findings.empty()) << to_string(result.findings);
    lanes += result.counts.all.lanes;
  }

  Session session;
  std::uint64_t lanes = 0;
};

/// The host form with the kernels' order of the gray sum: a tree in each block, then a tree over strided threads.
double gray_sum_of(const std::vector<double>& grays) {
  const auto tree = [](std::vector<double> sums) {
    for (std::size_t half = sums.size() / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) sums[i] += sums[i + half];
    }
    return sums[0];
  };
  std::vector<double> strided(kBlock, 0.0);
  for (std::size_t begin = 0; begin < grays.size(); begin += kBlock) {
    std::vector<double> block(kBlock, 0.0);
    for (std::size_t i = begin; i < std::min(grays.size(), begin + kBlock); ++i) block[i - begin] = grays[i];
    strided[begin / kBlock % kBlock] += tree(block);
  }
  return tree(strided);
}

void run_host(const Yuv420View& view, const ImageAugmentation& a, const CanvasTile& place,
              const kernels::ImageTileShape& shape, std::uint8_t* canvas) {
  const kernels::ImageTile tile = tile_of(view, a, place, canvas);
  const std::int32_t contrast_at = kernels::contrast_place(tile.jitter), pixels = shape.height * shape.width;
  std::vector<float> planes(static_cast<std::size_t>(3 * pixels));
  std::vector<double> grays;
  for (std::int32_t i = 0; i < pixels; ++i) {
    float* rgb = planes.data() + 3 * i;
    kernels::resized_pixel(tile, shape, i / shape.width, i % shape.width, rgb);
    kernels::jitter_range(tile.jitter, 0, contrast_at, 0.0f, rgb);
    grays.push_back(static_cast<double>(kernels::gray_of(rgb[0], rgb[1], rgb[2])));
  }
  const float add =
      contrast_at < tile.jitter.operations ? kernels::contrast_term(tile.jitter, gray_sum_of(grays), pixels) : 0.0f;
  for (std::int32_t i = 0; i < pixels; ++i) {
    kernels::jitter_range(tile.jitter, contrast_at, tile.jitter.operations, add, planes.data() + 3 * i);
    kernels::place_pixel(tile, shape, i / shape.width, i % shape.width, planes.data() + 3 * i);
  }
}

TEST_F(ImageChainTest, CanvasesAreThoseOfTheHostBitForBit) {
  ImageConfig config;
  config.height = 22;
  config.width = 40;
  const auto layout = CanvasLayout::make("droid", 3, config.height, config.width);
  ASSERT_TRUE(layout);
  const std::size_t canvas_bytes = static_cast<std::size_t>(3 * layout->height * layout->width);
  const std::int64_t pixels = config.height * config.width, blocks = (pixels + kBlock - 1) / kBlock;
  for (std::uint64_t n = 0; n < 6; ++n) {
    const ImageAugmentation a = draw_augmentation(5, n, config, kHeight, kWidth);
    const FlatAxis columns(a.width, config.width), rows(a.height, config.height);
    const auto shape_of = [&](const kernels::AxisView& column, const kernels::AxisView& row) {
      return kernels::ImageTileShape{static_cast<std::int32_t>(config.height), static_cast<std::int32_t>(config.width),
                                     static_cast<std::int32_t>(layout->width), column, row};
    };
    const kernels::ImageTileShape device_shape = shape_of(
        {session.upload(columns.first), session.upload(columns.count), session.upload(columns.weights), columns.taps},
        {session.upload(rows.first), session.upload(rows.count), session.upload(rows.weights), rows.taps});
    std::vector<std::uint8_t> want(canvas_bytes, 0);
    std::uint8_t* canvas = session.upload(want);
    std::vector<kernels::ImageTile> tiles;
    for (std::size_t view = 0; view < 3; ++view) {
      const auto planes = random_planes(static_cast<std::uint32_t>(view + 3 * n));
      run_host(view_of(planes.data()), a, layout->tiles[view], shape_of(columns.view(), rows.view()), want.data());
      tiles.push_back(tile_of(view_of(session.upload(planes)), a, layout->tiles[view], canvas));
    }
    const kernels::ImageTile* device_tiles = session.upload(tiles);
    const Scratch scratch{session.allocate<float>(static_cast<std::size_t>(9 * pixels)),
                          session.allocate<double>(static_cast<std::size_t>(3 * blocks)), session.allocate<double>(3)};
    const LaunchShape grid{.grid = {static_cast<std::uint32_t>(blocks), 3, 1}, .block = {kBlock, 1, 1}};
    const LaunchOptions options{.seed = n};
    expect_clean(session.run(session.kernel_with("resize_tiles"), grid, options, device_tiles, device_shape, scratch));
    expect_clean(session.run(session.kernel_with("sum_gray"), {.grid = {3, 1, 1}, .block = {kBlock, 1, 1}}, options,
                             device_tiles, blocks, scratch));
    expect_clean(session.run(session.kernel_with("finish_tiles"), grid, options, device_tiles, device_shape, scratch));
    EXPECT_EQ(session.download(canvas, canvas_bytes), want) << "augmentation " << n;
  }
  EXPECT_GT(lanes, 1000000U);
}

TEST_F(ImageChainTest, Bf16IsTheRoundedValueInChannelOrder) {
  std::vector<std::uint8_t> canvases(2 * 60 * 3);
  for (std::size_t i = 0; i < canvases.size(); ++i) canvases[i] = static_cast<std::uint8_t>(i * 7);
  const std::uint8_t* in = session.upload(canvases);
  std::uint16_t* out = session.allocate<std::uint16_t>(canvases.size());
  const std::int64_t pixels = 60, samples = 2;
  expect_clean(
      session.run(session.kernel_with("normalise_canvas"), {.block = {kBlock, 1, 1}}, {}, in, pixels, samples, out));
  const auto got = session.download(out, canvases.size());
  for (std::size_t sample = 0; sample < 2; ++sample) {
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t pixel = 0; pixel < 60; ++pixel) {
        const float unit = kernels::unit_of_level(canvases[(sample * 60 + pixel) * 3 + c]);
        const float value = (unit - 0.5f) / 0.5f;
        std::uint32_t bits = 0;
        std::memcpy(&bits, &value, 4);
        ASSERT_EQ(got[(sample * 3 + c) * 60 + pixel], (bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
      }
    }
  }
}

}  // namespace
}  // namespace troupe::device::ptx
