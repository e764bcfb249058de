#pragma once

#include <cstdint>
#include <span>

#include "env/render/scene.h"

namespace troupe::env {

/// One shape as the inner loop of the ray renderer wants it. The ray of a pixel at (px, py) in the image's plane has
/// the direction d = turn * (px, py, -1) in the shape's frame, and t along it is depth. It is followed from the point p
/// at depth `start`, near the shape, where f32 keeps more digits than at the camera.
struct TraceGeom {
  GeomKind kind = GeomKind::sphere;
  /// A plane without edges.
  bool is_endless = false;
  bool is_checkered = false;
  /// Pixels that it may cover.
  std::int32_t x_begin = 0, x_end = 0, y_begin = 0, y_end = 0;
  /// No point of it is nearer than this.
  float nearest = 0;
  /// Depth of p.
  float start = 0;
  /// Camera frame to shape frame.
  float turn[3][3] = {};
  /// P = moved[.][0] * px + moved[.][1] * py + moved[.][2].
  float moved[3][3] = {};
  float size[3] = {};
  float inverse_size[3] = {};
  /// Times 255.
  float rgb[3] = {};
  std::uint32_t label = 0;
};

/// One image: shapes in the order in which they are tried, and the row's working memory, padded to a multiple of 16.
struct TraceImage {
  const TraceGeom* geoms = nullptr;
  std::int64_t num_geoms = 0;
  float inverse_focal = 0;
  float near = 0;
  RenderImages out;
  float* row_depth = nullptr;
  /// R, g, b, label from the lowest byte on.
  std::uint32_t* row_color = nullptr;
};

/// The inner loop, compiled for one instruction set. All give the same bits: they do the same operations in the same
/// order, without contraction.
struct TraceCode {
  /// "avx512", "avx2", "plain".
  const char* name;
  void (*run)(const TraceImage&);
};

/// Those that this machine runs, fastest first.
std::span<const TraceCode* const> trace_codes();

/// One per instruction set; called through trace_codes() only, because the processor must have it.
void trace_plain(const TraceImage& image);
void trace_avx2(const TraceImage& image);
void trace_avx512(const TraceImage& image);

}  // namespace troupe::env
