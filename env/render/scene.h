#pragma once

#include <array>
#include <cstdint>

namespace troupe::env {

/// Shapes that the ray renderer draws, each in a frame of its own (MuJoCo's conventions). RenderGeom::size, in metres:
enum class GeomKind : std::uint8_t {
  /// Z = 0, seen from above only; half lengths in x and y, both 0 for an endless one.
  plane,
  /// Radius.
  sphere,
  /// Radius, half length of the straight part along z.
  capsule,
  /// Radius, half length along z.
  cylinder,
  /// Half lengths.
  box,
  /// Half axes.
  ellipsoid,
};

/// What of a shape stays the same while it moves.
struct RenderGeom {
  GeomKind kind = GeomKind::sphere;
  /// Metres; see GeomKind.
  std::array<float, 3> size{};
  /// 0 to 1.
  std::array<float, 3> rgb{};
  /// In segmentation images; 0 is what nothing covers.
  std::uint8_t label = 1;
  /// Planes: squares of 0.5 m, 10 % lighter and darker by turns.
  bool is_checkered = false;
};

/// Where a shape is: its frame in the world. `rotation` is row-major with the frame's axes as columns.
struct GeomPose {
  /// Metres.
  std::array<float, 3> position{};
  std::array<float, 9> rotation{1, 0, 0, 0, 1, 0, 0, 0, 1};
};

/// A pinhole camera: x to the right, y up, looking along -z. Focal length in pixels: 0.5 * height / tan(fovy / 2).
struct RenderCamera {
  GeomPose pose;
  /// Radians, of the image's height.
  float fovy = 0.785398F;
};

/// Where the images of one view go, each row by row, top first; null for one that is not wanted. Not owned.
struct RenderImages {
  std::int64_t width = 0, height = 0;
  /// [height, width, 3].
  std::uint8_t* rgb = nullptr;
  /// [height, width], metres along the optical axis; 0 where nothing is hit.
  float* depth = nullptr;
  /// [height, width], RenderGeom::label; 0 where nothing is hit.
  std::uint8_t* labels = nullptr;
};

}  // namespace troupe::env
