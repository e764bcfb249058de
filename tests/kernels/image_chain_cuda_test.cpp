// The CUDA image chain against the CPU's, on a GPU. Without a device every test is skipped by name.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "image/image_chain.h"
#include "kernels/image_chain.h"
#include "tests/image/scalar_chain.h"

namespace troupe::kernels {
using namespace data;
namespace {

using Bytes = std::vector<std::uint8_t>;

/// Device memory with a copy of host values.
class DeviceBuffer {
 public:
  DeviceBuffer(const void* from, std::size_t bytes) {
    EXPECT_EQ(cudaMalloc(&data_, bytes), cudaSuccess);
    if (from != nullptr) {
      EXPECT_EQ(cudaMemcpy(data_, from, bytes, cudaMemcpyHostToDevice), cudaSuccess);
    }
  }
  ~DeviceBuffer() { cudaFree(data_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

template <class T>
DeviceBuffer upload(const std::vector<T>& values) {
  return DeviceBuffer(values.data(), values.size() * sizeof(T));
}

class ImageChainCudaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no CUDA device";
  }
};

constexpr std::int64_t kHeight = 180, kWidth = 320, kFrames = 3, kViews = 3;

Bytes random_planes(std::uint32_t seed) {
  std::mt19937 random(seed);
  Bytes planes;
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

/// The canvases of kFrames time steps through the GPU.
Bytes run_on_device(const std::vector<Bytes>& planes, const ImageConfig& config, const ImageAugmentation& a,
                    const CanvasLayout& layout) {
  const FlatAxis columns(a.width, config.width), rows(a.height, config.height);
  const DeviceBuffer column_first = upload(columns.first), column_count = upload(columns.count),
                     column_weights = upload(columns.weights), row_first = upload(rows.first),
                     row_count = upload(rows.count), row_weights = upload(rows.weights);
  const kernels::ImageTileShape shape{
      static_cast<std::int32_t>(config.height),
      static_cast<std::int32_t>(config.width),
      static_cast<std::int32_t>(layout.width),
      {column_first.as<std::int32_t>(), column_count.as<std::int32_t>(), column_weights.as<float>(), columns.taps},
      {row_first.as<std::int32_t>(), row_count.as<std::int32_t>(), row_weights.as<float>(), rows.taps}};
  const std::int64_t canvas_bytes = 3 * layout.height * layout.width;
  const DeviceBuffer canvases(nullptr, static_cast<std::size_t>(kFrames * canvas_bytes));
  EXPECT_EQ(cudaMemset(canvases.as<void>(), 0, static_cast<std::size_t>(kFrames * canvas_bytes)), cudaSuccess);
  std::vector<std::unique_ptr<DeviceBuffer>> sources;
  std::vector<kernels::ImageTile> tiles;
  for (std::int64_t i = 0; i < kFrames * kViews; ++i) {
    const Bytes& p = planes[static_cast<std::size_t>(i)];
    sources.push_back(std::make_unique<DeviceBuffer>(p.data(), p.size()));
    tiles.push_back(tile_of(view_of(sources.back()->as<std::uint8_t>()), a,
                            layout.tiles[static_cast<std::size_t>(i % kViews)],
                            canvases.as<std::uint8_t>() + i / kViews * canvas_bytes));
  }
  const auto count = static_cast<std::int64_t>(tiles.size());
  const DeviceBuffer device_tiles = upload(tiles);
  const DeviceBuffer scratch(
      nullptr, static_cast<std::size_t>(kernels::image_chain_scratch_bytes(count, config.height, config.width)));
  EXPECT_EQ(
      kernels::launch_image_chain(device_tiles.as<kernels::ImageTile>(), count, shape, scratch.as<void>(), nullptr),
      cudaSuccess);
  Bytes out(static_cast<std::size_t>(kFrames * canvas_bytes));
  EXPECT_EQ(cudaMemcpy(out.data(), canvases.as<void>(), out.size(), cudaMemcpyDeviceToHost), cudaSuccess);
  return out;
}

TEST_F(ImageChainCudaTest, CanvasesAreThoseOfTheCpuToOneLevel) {
  const ImageConfig config;
  std::vector<Bytes> planes;
  for (std::uint32_t i = 0; i < kFrames * kViews; ++i) planes.push_back(random_planes(i));
  auto chain = ImageChain::make(config, "droid", kViews);
  ASSERT_TRUE(chain);
  const auto layout = CanvasLayout::make("droid", kViews, config.height, config.width);
  for (std::uint64_t n = 0; n < 24; ++n) {
    const ImageAugmentation a = draw_augmentation(5, n, config, kHeight, kWidth);
    const Bytes got = run_on_device(planes, config, a, *layout);
    Bytes want(got.size());
    const auto canvas_bytes = static_cast<std::size_t>(chain->canvas_bytes());
    for (std::size_t i = 0; i < planes.size(); ++i) {
      const auto canvas = std::span(want).subspan(i / kViews * canvas_bytes, canvas_bytes);
      ASSERT_TRUE(chain->run_view(static_cast<std::int64_t>(i % kViews), view_of(planes[i].data()), a, canvas));
    }
    std::size_t different = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_LE(std::abs(int{got[i]} - int{want[i]}), 1) << "augmentation " << n << " byte " << i;
      different += got[i] != want[i];
    }
    EXPECT_LE(different, got.size() / 1000) << "augmentation " << n;
  }
}

TEST_F(ImageChainCudaTest, Bf16IsTheRoundedValueInChannelOrder) {
  Bytes canvases(2 * 3 * 4 * 5 * 3);  // two samples of three time steps of 4x5
  for (std::size_t i = 0; i < canvases.size(); ++i) canvases[i] = static_cast<std::uint8_t>(i * 7);
  const DeviceBuffer source = upload(canvases);
  const DeviceBuffer out(nullptr, canvases.size() * 2);
  ASSERT_EQ(kernels::launch_canvas_to_bf16(source.as<std::uint8_t>(), 2, 3, 4, 5, out.as<std::uint16_t>(), nullptr),
            cudaSuccess);
  std::vector<std::uint16_t> got(canvases.size());
  ASSERT_EQ(cudaMemcpy(got.data(), out.as<void>(), got.size() * 2, cudaMemcpyDeviceToHost), cudaSuccess);
  for (std::size_t sample = 0; sample < 2; ++sample) {
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t pixel = 0; pixel < 60; ++pixel) {
        const float want = (static_cast<float>(canvases[(sample * 60 + pixel) * 3 + c]) / 255.0f - 0.5f) / 0.5f;
        const std::uint32_t bits = std::uint32_t{got[(sample * 3 + c) * 60 + pixel]} << 16;
        float value = 0;
        std::memcpy(&value, &bits, sizeof value);
        EXPECT_NEAR(value, want, 1.0 / 256);
      }
    }
  }
}

TEST_F(ImageChainCudaTest, NoTileIsNoWork) {
  EXPECT_EQ(kernels::launch_image_chain(nullptr, 0, {}, nullptr, nullptr), cudaSuccess);
  EXPECT_EQ(kernels::launch_canvas_to_bf16(nullptr, 0, 3, 4, 5, nullptr, nullptr), cudaSuccess);
}

}  // namespace
}  // namespace troupe::kernels
