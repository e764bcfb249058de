#pragma once

#include <mujoco/mujoco.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "env/arm7/arm7_model.h"
#include "env/render/ray_renderer.h"
#include "image/image_chain.h"

namespace troupe::env {

/// front and side stand still, wrist sits on the hand, ext0 and ext1 are the two outer views of the droid profile.
std::span<const std::string_view> arm7_camera_names();

/// Where the camera is now. Needs mj_kinematics of the present state. nullopt: no such camera.
std::optional<RenderCamera> arm7_camera(const Arm7Model& arm, const mjData& data, std::string_view name);

/// Draws one environment's state. Not thread-safe; allocates only for the first image of a size.
/// Supersampling: colours are drawn at several times the width and height, and made smaller by the resize that pictures
/// of demonstrations go through (image/image_chain.h), to the byte. So a policy that learned from recorded
/// pictures of a larger size finds the same edges in those that it acts on.
class Arm7Painter {
 public:
  /// `arm` must outlive the painter.
  explicit Arm7Painter(const Arm7Model& arm);

  /// Components 0 to 1; nothing happens in a task without a cube.
  void set_cube_color(const std::array<float, 3>& rgb);
  /// Takes over where everything is. Needs mj_kinematics of the present state.
  void look(const mjData& data);
  /// As RayRenderer::draw, of what look() saw last; colours at `supersample` times the size of `out` and then resized.
  /// Depth and labels have one ray a pixel whatever it is: a mean of two depths, or of two labels, is no place and no
  /// thing. Requires supersample >= 1; 1 draws the bytes of RayRenderer::draw.
  void draw(const RenderCamera& camera, const RenderImages& out, std::int64_t supersample = 1);

 private:
  void draw_resized(const RenderCamera& camera, const RenderImages& out, std::int64_t supersample);

  const Arm7Model* arm_;
  std::vector<RenderGeom> looks_;
  std::vector<GeomPose> poses_;
  RayRenderer renderer_;
  /// Colours of the last supersampled image before the resize, and what resizes them.
  std::vector<std::uint8_t> large_;
  std::optional<ImageChain> resize_;
};

}  // namespace troupe::env
