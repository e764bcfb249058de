#include "env/render/ray_renderer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <ostream>
#include <vector>

#include "base/random.h"
#include "tests/env/render/reference_rays.h"

namespace troupe::env {
namespace {

struct Images {
  Images(std::int64_t w, std::int64_t h)
      : width(w),
        height(h),
        rgb(static_cast<std::size_t>(3 * w * h), 7),
        depth(static_cast<std::size_t>(w * h), -1),
        labels(static_cast<std::size_t>(w * h), 9) {}
  RenderImages view() { return {width, height, rgb.data(), depth.data(), labels.data()}; }
  bool operator==(const Images& o) const {
    return rgb == o.rgb && labels == o.labels && std::memcmp(depth.data(), o.depth.data(), 4 * depth.size()) == 0;
  }
  std::int64_t width, height;
  std::vector<std::uint8_t> rgb;
  std::vector<float> depth;
  std::vector<std::uint8_t> labels;
};

struct Scene {
  std::vector<RenderGeom> geoms;
  std::vector<GeomPose> poses;
  RenderCamera camera;

  Images drawn(std::int64_t width, std::int64_t height, const TraceCode& code = *trace_codes().front()) const {
    Images images(width, height);
    RayRenderer(code).draw(geoms, poses, camera, images.view());
    return images;
  }
};

/// One shape, with the camera's own axes, before a camera at the origin that looks along -z.
Scene one_shape(const RenderGeom& geom, std::array<float, 3> position) {
  Scene scene;
  scene.geoms = {geom};
  scene.poses.resize(1);
  scene.poses[0].position = position;
  return scene;
}

std::array<float, 9> random_rotation(CounterRng& rng) {
  double q[4], length = 0;
  for (double& v : q) v = rng.normal(), length += v * v;
  for (double& v : q) v /= std::sqrt(length);
  const double w = q[0], x = q[1], y = q[2], z = q[3];
  const double m[9] = {1 - 2 * (y * y + z * z), 2 * (x * y - w * z),     2 * (x * z + w * y),
                       2 * (x * y + w * z),     1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                       2 * (x * z - w * y),     2 * (y * z + w * x),     1 - 2 * (x * x + y * y)};
  std::array<float, 9> out{};
  for (std::size_t i = 0; i < 9; ++i) out[i] = static_cast<float>(m[i]);
  return out;
}

/// Shapes all around a camera at the origin: in front, behind, and so near that it is within their bounding spheres.
Scene random_scene(std::initializer_list<GeomKind> kinds, int count, std::uint64_t seed) {
  CounterRng rng(seed, 0, 0);
  Scene scene;
  scene.camera.fovy = static_cast<float>(rng.uniform(0.6, 1.6));
  scene.camera.pose.rotation = random_rotation(rng);
  for (float& p : scene.camera.pose.position) p = static_cast<float>(rng.uniform(-1, 1));
  for (int i = 0; i < count; ++i) {
    RenderGeom geom;
    geom.kind = kinds.begin()[i % static_cast<int>(kinds.size())];
    for (float& s : geom.size) s = static_cast<float>(rng.uniform(0.05, 0.7));
    for (float& c : geom.rgb) c = rng.uniform();
    geom.label = static_cast<std::uint8_t>(1 + i);
    geom.is_checkered = i % 2 == 0;
    if (geom.kind == GeomKind::plane && i % 3 == 0) geom.size = {};
    GeomPose pose;
    pose.rotation = random_rotation(rng);
    for (std::size_t k = 0; k < 3; ++k)
      pose.position[k] = scene.camera.pose.position[k] + static_cast<float>(rng.uniform(-1.6, 1.6));
    scene.geoms.push_back(geom);
    scene.poses.push_back(pose);
  }
  return scene;
}

constexpr double kDepthTolerance = 1e-4;  // relative
constexpr double kSubPixel = 4e-3;        // f32 rays pass an edge this much earlier or later

/// Whether pixel (x, y) is what rays through its middle, give or take kSubPixel, meet.
bool pixel_agrees(const Scene& scene, const Images& p, std::int64_t x, std::int64_t y) {
  const auto i = static_cast<std::size_t>(y * p.width + x);
  double near = 1e30, far = -1e30, low[3] = {1e30, 1e30, 1e30}, high[3] = {-1e30, -1e30, -1e30};
  for (int n = 0; n < 9; ++n) {
    const double dx = kSubPixel * (n % 3 - 1), dy = kSubPixel * (n / 3 - 1);
    const auto sample = cast_ray(scene.geoms, scene.poses, scene.camera, p.width, p.height,
                                 static_cast<double>(x) + 0.5 + dx, static_cast<double>(y) + 0.5 + dy);
    if (sample.label != p.labels[i]) continue;
    near = std::min(near, sample.depth);
    far = std::max(far, sample.depth);
    for (std::size_t k = 0; k < 3; ++k)
      low[k] = std::min(low[k], sample.rgb[k]), high[k] = std::max(high[k], sample.rgb[k]);
  }
  bool good = p.depth[i] >= near * (1 - kDepthTolerance) && p.depth[i] <= far * (1 + kDepthTolerance);
  for (std::size_t k = 0; k < 3; ++k) {
    const double value = p.rgb[3 * i + k];
    good = good && value >= low[k] - 1 && value <= high[k] + 1;
  }
  return good;
}

void expect_agreement(const Scene& scene, std::int64_t width, std::int64_t height, std::uint64_t seed) {
  const Images p = scene.drawn(width, height);
  int wrong = 0;
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      if (pixel_agrees(scene, p, x, y)) continue;
      const auto i = static_cast<std::size_t>(y * width + x);
      const auto want = cast_ray(scene.geoms, scene.poses, scene.camera, width, height, static_cast<double>(x) + 0.5,
                                 static_cast<double>(y) + 0.5);
      if (++wrong <= 3) {
        ADD_FAILURE() << "seed " << seed << " pixel " << x << "," << y << " of " << width << "x" << height << ": label "
                      << int{p.labels[i]} << " depth " << p.depth[i] << " red " << int{p.rgb[3 * i]} << ", wants "
                      << int{want.label} << " " << want.depth << " " << want.rgb[0];
      }
    }
  }
  EXPECT_EQ(wrong, 0);
}

struct KindCase {
  const char* name;
  GeomKind kind;
};
std::ostream& operator<<(std::ostream& out, const KindCase& c) { return out << c.name; }

class RayRendererKindTest : public ::testing::TestWithParam<KindCase> {};

TEST_P(RayRendererKindTest, AgreesWithRaysInDoublePrecision) {
  std::uint64_t seed = 0;
  for (const auto& [width, height] : {std::pair{37, 23}, {1, 1}, {64, 48}, {17, 5}, {3, 31}, {84, 84}}) {
    ++seed;
    expect_agreement(random_scene({GetParam().kind}, 8, seed), width, height, seed);
  }
}

TEST_P(RayRendererKindTest, AgreesWhenTheCameraIsInsideTheBoundingSphereOrTheShape) {
  for (std::uint64_t seed = 100; seed < 112; ++seed) {
    Scene scene = random_scene({GetParam().kind}, 2, seed);
    CounterRng rng(seed, 1, 0);
    for (auto& pose : scene.poses) {
      for (std::size_t k = 0; k < 3; ++k)
        pose.position[k] = scene.camera.pose.position[k] + static_cast<float>(rng.uniform(-0.4, 0.4));
    }
    expect_agreement(scene, 33, 29, seed);
  }
}

TEST_P(RayRendererKindTest, DrawsNothingBehindTheCamera) {
  const RenderGeom geom{.kind = GetParam().kind, .size = {0.1F, 0.2F, 0.3F}, .rgb = {1, 1, 1}, .label = 5};
  const Images p = one_shape(geom, {0, 0, 0.6F}).drawn(21, 21);
  EXPECT_EQ(std::count(p.labels.begin(), p.labels.end(), 0), 21 * 21);
}

TEST_P(RayRendererKindTest, StaysFiniteForRaysAlongItsAxes) {
  // the middle pixel of an odd frame looks exactly along -z of a shape in the camera's own frame
  const Scene scene =
      one_shape({.kind = GetParam().kind, .size = {0.1F, 0.2F, 0.3F}, .rgb = {1, 1, 1}, .label = 5}, {0, 0, -2});
  expect_agreement(scene, 31, 31, 0);
  const Images p = scene.drawn(31, 31);
  EXPECT_EQ(p.labels[15 * 31 + 15], 5);
}

INSTANTIATE_TEST_SUITE_P(Kinds, RayRendererKindTest,
                         ::testing::Values(KindCase{"plane", GeomKind::plane}, KindCase{"sphere", GeomKind::sphere},
                                           KindCase{"capsule", GeomKind::capsule},
                                           KindCase{"cylinder", GeomKind::cylinder}, KindCase{"box", GeomKind::box},
                                           KindCase{"ellipsoid", GeomKind::ellipsoid}),
                         [](const auto& instance) { return std::string(instance.param.name); });

constexpr std::initializer_list<GeomKind> kAllKinds = {GeomKind::box,      GeomKind::sphere,    GeomKind::capsule,
                                                       GeomKind::cylinder, GeomKind::ellipsoid, GeomKind::plane};

TEST(RayRendererTest, CrowdedScenesAgreeWithRaysInDoublePrecision) {
  for (std::uint64_t seed = 200; seed < 206; ++seed) expect_agreement(random_scene(kAllKinds, 30, seed), 61, 47, seed);
}

TEST(RayRendererTest, EveryInstructionSetGivesTheSameBits) {
  for (std::uint64_t seed = 300; seed < 320; ++seed) {
    const Scene scene = random_scene(kAllKinds, 24, seed);
    const Images first = scene.drawn(101, 67);
    for (const TraceCode* code : trace_codes())
      EXPECT_TRUE(scene.drawn(101, 67, *code) == first) << code->name << " seed " << seed;
  }
}

TEST(RayRendererTest, TheOrderOfShapesDoesNotMatter) {
  Scene scene = random_scene(kAllKinds, 24, 7);
  const Images first = scene.drawn(64, 64);
  std::reverse(scene.geoms.begin(), scene.geoms.end());
  std::reverse(scene.poses.begin(), scene.poses.end());
  EXPECT_TRUE(scene.drawn(64, 64) == first);
}

TEST(RayRendererTest, ADepthIsMeasuredAlongTheOpticalAxis) {
  // a wall 2 m ahead has the same depth in every pixel
  const Scene scene =
      one_shape({.kind = GeomKind::box, .size = {9, 9, 0.5F}, .rgb = {1, 0, 0}, .label = 3}, {0, 0, -2.5F});
  const Images p = scene.drawn(40, 30);
  for (const float depth : p.depth) ASSERT_NEAR(depth, 2.0F, 1e-5F);
}

TEST(RayRendererTest, TheFirstRowIsTheTopAndTheFirstColumnTheLeft) {
  const Scene scene =
      one_shape({.kind = GeomKind::sphere, .size = {0.1F}, .rgb = {1, 1, 1}, .label = 1}, {-0.3F, 0.3F, -1});
  const Images p = scene.drawn(40, 40);
  const auto first = std::find(p.labels.begin(), p.labels.end(), 1) - p.labels.begin();
  EXPECT_LT(first / 40, 20);
  EXPECT_LT(first % 40, 20);
}

TEST(RayRendererTest, TheSkyHasNoDepthNoLabelAndItsColour) {
  const Images p = Scene{}.drawn(5, 3);
  EXPECT_EQ(p.depth, std::vector<float>(15, 0.0F));
  EXPECT_EQ(p.labels, std::vector<std::uint8_t>(15, 0));
  for (std::size_t i = 0; i < 15; ++i) {
    EXPECT_EQ(p.rgb[3 * i], 102);
    EXPECT_EQ(p.rgb[3 * i + 1], 128);
    EXPECT_EQ(p.rgb[3 * i + 2], 153);
  }
}

TEST(RayRendererTest, ImagesThatAreNotWantedAreLeftOut) {
  const Scene scene = random_scene(kAllKinds, 12, 3);
  const Images all = scene.drawn(19, 11);
  Images some(19, 11);
  RayRenderer renderer;
  renderer.draw(scene.geoms, scene.poses, scene.camera, {.width = 19, .height = 11, .depth = some.depth.data()});
  EXPECT_EQ(some.depth, all.depth);
  EXPECT_EQ(some.rgb, std::vector<std::uint8_t>(some.rgb.size(), 7));
}

TEST(RayRendererTest, ShapesWithoutAPlaceAreLeftOut) {
  // what a simulation that broke down hands over
  Scene scene = random_scene(kAllKinds, 12, 5);
  for (auto& pose : scene.poses) pose.position[1] = std::numeric_limits<float>::quiet_NaN();
  const Images p = scene.drawn(19, 11);
  EXPECT_EQ(p.labels, std::vector<std::uint8_t>(p.labels.size(), 0));
}

TEST(RayRendererTest, NothingIsWrittenBehindTheImage) {
  const Scene scene = random_scene(kAllKinds, 12, 4);
  std::vector<std::uint8_t> rgb(3 * 13 * 7 + 8, 0xA5);
  RayRenderer renderer;
  renderer.draw(scene.geoms, scene.poses, scene.camera, {.width = 13, .height = 7, .rgb = rgb.data()});
  EXPECT_EQ(std::count(rgb.end() - 8, rgb.end(), 0xA5), 8);
}

}  // namespace
}  // namespace troupe::env
