#pragma once

#include <mujoco/mujoco.h>

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "env/arm7/arm7_model.h"
#include "env/render/ray_renderer.h"

namespace troupe::env {

/// front and side stand still, wrist sits on the hand, ext0 and ext1 are the two outer views of the droid profile.
std::span<const std::string_view> arm7_camera_names();

/// Where the camera is now. Needs mj_kinematics of the present state. nullopt: no such camera.
std::optional<RenderCamera> arm7_camera(const Arm7Model& arm, const mjData& data, std::string_view name);

/// Draws one environment's state. Not thread-safe; allocates only for the first image of a size.
class Arm7Painter {
 public:
  /// `arm` must outlive the painter.
  explicit Arm7Painter(const Arm7Model& arm);

  /// Components 0 to 1; nothing happens in a task without a cube.
  void set_cube_color(const std::array<float, 3>& rgb);
  /// Takes over where everything is. Needs mj_kinematics of the present state.
  void look(const mjData& data);
  /// As RayRenderer::draw, of what look() saw last.
  void draw(const RenderCamera& camera, const RenderImages& out);

 private:
  const Arm7Model* arm_;
  std::vector<RenderGeom> looks_;
  std::vector<GeomPose> poses_;
  RayRenderer renderer_;
};

}  // namespace troupe::env
