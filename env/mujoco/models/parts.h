#pragma once

#include <array>
#include <string_view>

#include "env/mujoco/mjcf.h"

namespace troupe::env::gym_models {

using Vector3 = std::array<double, 3>;

/// A model whose masses come from its geoms and whose joints are limited where `limited` says so. `angle`: the unit of
/// its angles, degree or radian.
inline MjcfElement make_model(std::string_view angle) {
  MjcfElement model("mujoco");
  model.add("compiler").set("angle", angle).set("inertiafromgeom", "true").set("autolimits", "false");
  return model;
}

/// A motor on a joint, its control limited to [-limit, limit].
inline void add_motor(MjcfElement& actuators, std::string_view name, std::string_view joint, double gear,
                      double limit) {
  auto& motor = actuators.add("motor");
  if (!name.empty()) motor.set("name", name);
  motor.set("joint", joint).set("gear", gear).set("ctrllimited", "true").set("ctrlrange", {-limit, limit});
}

/// A capsule whose axis runs between two points.
inline MjcfElement& add_capsule(MjcfElement& body, std::string_view name, const Vector3& from, const Vector3& to,
                                double radius) {
  auto& geom = body.add("geom").set("type", "capsule");
  if (!name.empty()) geom.set("name", name);
  return geom.set("fromto", {from[0], from[1], from[2], to[0], to[1], to[2]}).set("size", radius);
}

/// A capsule along the body's z axis until something places or turns it; half its cylinder's length in metres.
inline MjcfElement& add_capsule(MjcfElement& body, std::string_view name, double radius, double half_length) {
  return body.add("geom").set("type", "capsule").set("name", name).set("size", {radius, half_length});
}

/// `size`: half lengths along x and y, and the distance of the lines it is drawn with.
inline MjcfElement& add_plane(MjcfElement& world, std::string_view name, const Vector3& size) {
  return world.add("geom").set("name", name).set("type", "plane").set("size", size);
}

/// `pos` in metres in the body's frame, `radius` in metres.
inline MjcfElement& add_sphere(MjcfElement& body, std::string_view name, const Vector3& pos, double radius) {
  return body.add("geom").set("type", "sphere").set("name", name).set("pos", pos).set("size", radius);
}

/// A child body at `pos` in its parent's frame; an empty name is left out.
inline MjcfElement& add_body(MjcfElement& parent, std::string_view name, const Vector3& pos) {
  auto& body = parent.add("body");
  if (!name.empty()) body.set("name", name);
  return body.set("pos", pos);
}

/// `type`: hinge, slide or another of MuJoCo's; `axis` in the body's frame.
inline MjcfElement& add_joint(MjcfElement& body, std::string_view name, std::string_view type, const Vector3& axis) {
  return body.add("joint").set("name", name).set("type", type).set("axis", axis);
}

/// Lets a joint of the root go: moved by nothing and limited by nothing.
inline MjcfElement& set_free(MjcfElement& joint) {
  return joint.set("armature", 0).set("damping", 0).set("stiffness", 0).set("limited", "false");
}
inline MjcfElement& add_root_joint(MjcfElement& body, std::string_view name, std::string_view type,
                                   const Vector3& axis) {
  return set_free(add_joint(body, name, type, axis));
}
/// All six freedoms of the root in one joint.
inline MjcfElement& add_free_joint(MjcfElement& body) {
  return set_free(body.add("joint").set("name", "root").set("type", "free"));
}

}  // namespace troupe::env::gym_models
