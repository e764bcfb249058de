#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "env/render/scene.h"
#include "env/render/trace.h"

namespace troupe::env {

/// Draws scenes of a few primitives by casting one ray through the middle of every pixel: no GL, no state, the
/// same bits on every machine and instruction set. Light comes from the camera, along its axis; colours are
/// rgb * (0.35 + 0.65 * max(0, normal . light)), without shadows; the sky is (102, 128, 153).
///
/// What is nearer than kNear along the optical axis is not seen, and a solid is seen from outside only.
/// Speed: 15 shapes at 128x128 take about 0.1 ms or less on one core (bench/env/render_bench.cpp).
/// Holds scratch memory only: it allocates when an image or scene is larger than all before. One thread at a time.
class RayRenderer {
 public:
  /// Metres.
  static constexpr float kNear = 0.01F;

  /// With the fastest code that this machine runs.
  RayRenderer();
  /// With the given code, one of trace_codes().
  explicit RayRenderer(const TraceCode& code);

  /// `poses` has one entry for each of `geoms`. Where two surfaces are equally far, any of them is drawn.
  void draw(std::span<const RenderGeom> geoms, std::span<const GeomPose> poses, const RenderCamera& camera,
            const RenderImages& out);

 private:
  const TraceCode* code_;
  std::vector<TraceGeom> seen_, ordered_;
  std::vector<std::uint32_t> order_;
  std::vector<float> row_depth_;
  std::vector<std::uint32_t> row_color_;
};

}  // namespace troupe::env
