// One frame through the image chain, planes to canvas, by instruction set, source size and jitter. Expect on one
// AVX-512 core, for 320x180 to 176x320: about 0.06 ms without jitter (budget: 0.093 for crop and resize alone)
// and 0.10-0.14 with all of it.
#include <benchmark/benchmark.h>

#include <random>
#include <string>

#include "image/image_chain.h"

namespace troupe::bench {
namespace {

struct Image {
  std::vector<std::uint8_t> y, u, v;
  std::int64_t height, width;
  Image(std::int64_t h, std::int64_t w) : height(h), width(w) {
    std::mt19937 random(1);
    for (auto* plane : {&y, &u, &v}) {
      plane->resize(static_cast<std::size_t>(plane == &y ? h * w : h * w / 4));
      for (auto& value : *plane) value = static_cast<std::uint8_t>(random());
    }
  }
  Yuv420View view() const { return {y.data(), u.data(), v.data(), width, width / 2, width / 2, height, width}; }
};

/// operation: 0..3 one of the jitter's, 4 all in drawn orders, 5 none.
void run_chain(benchmark::State& state, const TileRows* rows, std::int64_t height, std::int64_t width, int operation) {
  const Image image(height, width);
  const ImageConfig config;
  auto chain = std::move(ImageChain::make(config, "single", 1, *rows)).value();
  std::vector<std::uint8_t> canvas(static_cast<std::size_t>(chain.canvas_bytes()));
  std::vector<ImageAugmentation> drawn;
  for (std::uint64_t n = 0; n < 24; ++n) {
    drawn.push_back(draw_augmentation(1, n, config, height, width));
    if (operation == 5) drawn.back().jitter.operations = 0;
    if (operation < 4) {
      drawn.back().jitter.operations = 1;
      drawn.back().jitter.order[0] = static_cast<std::uint8_t>(operation);
    }
  }
  std::size_t n = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(chain.run_view(0, image.view(), drawn[n++ % drawn.size()], canvas));
  }
  state.SetItemsProcessed(state.iterations());
}

}  // namespace
}  // namespace troupe::bench

int main(int argc, char** argv) {
  using namespace troupe::bench;
  benchmark::Initialize(&argc, argv);
  const char* const names[] = {"brightness", "contrast", "saturation", "hue", "jitter", "none"};
  for (const TileRows* rows : tile_rows()) {
    for (const auto& [height, width] : {std::pair{180, 320}, std::pair{480, 640}}) {
      for (const int operation : {5, 4, 0, 1, 2, 3}) {
        const std::string name = std::string("BM_ImageChain/") + rows->name + "/" + std::to_string(width) + "x" +
                                 std::to_string(height) + "/" + names[operation];
        benchmark::RegisterBenchmark(name.c_str(), run_chain, rows, height, width, operation)
            ->Unit(benchmark::kMillisecond);
      }
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
