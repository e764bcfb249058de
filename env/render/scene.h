#pragma once

#include <array>
#include <cstdint>

namespace troupe {

/// Shapes that the ray renderer draws, each in a frame of its own (MuJoCo's conventions). RenderGeom::size, in metres:
enum class GeomKind : std::uint8_t {
  plane,      ///< z = 0, seen from above only; half lengths in x and y, both 0 for an endless one
  sphere,     ///< radius
  capsule,    ///< radius, half length of the straight part along z
  cylinder,   ///< radius, half length along z
  box,        ///< half lengths
  ellipsoid,  ///< half axes
};

/// What of a shape stays the same while it moves.
struct RenderGeom {
  GeomKind kind = GeomKind::sphere;
  std::array<float, 3> size{};  ///< metres; see GeomKind
  std::array<float, 3> rgb{};   ///< 0 to 1
  std::uint8_t label = 1;       ///< in segmentation pictures; 0 is what nothing covers
  bool is_checkered = false;    ///< planes: squares of 0.5 m, 10 % lighter and darker by turns
};

/// Where a shape is: its frame in the world. `rotation` is row-major with the frame's axes as columns.
struct GeomPose {
  std::array<float, 3> position{};  ///< metres
  std::array<float, 9> rotation{1, 0, 0, 0, 1, 0, 0, 0, 1};
};

/// A pinhole camera: x to the right, y up, looking along -z. Focal length in pixels: 0.5 * height / tan(fovy / 2).
struct RenderCamera {
  GeomPose pose;
  float fovy = 0.785398F;  ///< radians, of the picture's height
};

/// Where the pictures of one view go, each row by row, top first; null for one that is not wanted. Not owned.
struct RenderPictures {
  std::int64_t width = 0, height = 0;
  std::uint8_t* rgb = nullptr;     ///< [height, width, 3]
  float* depth = nullptr;          ///< [height, width], metres along the optical axis; 0 where nothing is hit
  std::uint8_t* labels = nullptr;  ///< [height, width], RenderGeom::label; 0 where nothing is hit
};

}  // namespace troupe
