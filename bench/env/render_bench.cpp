// The ray renderer's cost of one view with colour, depth and labels, by number of shapes and frame size, for every
// instruction set that the machine runs. Expect time to grow with pixels, and less than in proportion with shapes: they
// hide each other, and nearest come first. Wanted of one core: 15 shapes at 128x128 >= 10,000 frames per
// CPU-second and at 84x84 >= 20,000; 61 shapes at 128x128 >= 4,000 and at 64x64 >= 10,000.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "env/render/ray_renderer.h"

namespace troupe::bench {
namespace {

struct Tabletop {
  std::vector<RenderGeom> geoms;
  std::vector<GeomPose> poses;
  RenderCamera camera;
};

/// A checkered floor, a table that fills half of the view, and small shapes of all kinds above it.
Tabletop make_tabletop(std::int64_t count) {
  Tabletop scene;
  // looking down at the table from 1.2 m
  scene.camera.pose.position = {1.35F, 0, 0.75F};
  scene.camera.pose.rotation = {0, -0.6F, 0.8F, 1, 0, 0, 0, 0.8F, 0.6F};
  scene.camera.fovy = 0.8727F;
  scene.geoms.push_back({.kind = GeomKind::plane, .rgb = {0.5F, 0.5F, 0.5F}, .label = 1, .is_checkered = true});
  scene.poses.push_back({.position = {0, 0, -0.4F}});
  scene.geoms.push_back({.kind = GeomKind::box, .size = {0.6F, 0.6F, 0.2F}, .rgb = {0.7F, 0.6F, 0.5F}, .label = 2});
  scene.poses.push_back({.position = {0.45F, 0, -0.2F}});
  CounterRng rng(1, 0, 0);
  constexpr GeomKind kKinds[] = {GeomKind::capsule, GeomKind::box, GeomKind::cylinder, GeomKind::sphere,
                                 GeomKind::ellipsoid};
  while (static_cast<std::int64_t>(scene.geoms.size()) < count) {
    const std::size_t i = scene.geoms.size();
    scene.geoms.push_back({.kind = kKinds[i % 5],
                           .size = {0.04F, 0.08F, 0.05F},
                           .rgb = {0.8F, 0.2F, 0.2F},
                           .label = static_cast<std::uint8_t>(i)});
    const float a = 6.28F * rng.uniform();
    scene.poses.push_back({.position = {0.2F + 0.5F * rng.uniform(), rng.uniform() - 0.5F, 0.4F * rng.uniform()},
                           .rotation = {std::cos(a), 0, std::sin(a), 0, 1, 0, -std::sin(a), 0, std::cos(a)}});
  }
  return scene;
}

void BM_RayRender(benchmark::State& state, const TraceCode* code) {
  const Tabletop scene = make_tabletop(state.range(0));
  const std::int64_t side = state.range(1);
  const auto pixels = static_cast<std::size_t>(side * side);
  std::vector<std::uint8_t> rgb(3 * pixels), labels(pixels);
  std::vector<float> depth(pixels);
  RayRenderer renderer(*code);
  for (auto _ : state) {
    renderer.draw(scene.geoms, scene.poses, scene.camera, {side, side, rgb.data(), depth.data(), labels.data()});
    benchmark::DoNotOptimize(rgb.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations());
  state.counters["frames_per_cpu_s"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

[[maybe_unused]] const bool kRegistered = [] {
  for (const TraceCode* code : trace_codes()) {
    benchmark::RegisterBenchmark(("BM_RayRender/" + std::string(code->name)).c_str(), BM_RayRender, code)
        ->ArgNames({"shapes", "side"})
        ->Args({15, 84})
        ->Args({15, 128})
        ->Args({15, 256})
        ->Args({61, 64})
        ->Args({61, 128})
        ->Unit(benchmark::kMicrosecond);
  }
  return true;
}();

}  // namespace
}  // namespace troupe::bench
