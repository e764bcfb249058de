#include <array>

#include "env/mujoco/models/models.h"
#include "env/mujoco/models/parts.h"

namespace troupe::env::gym_models {
namespace {

/// One link of a leg: a body with a hinge about y and a capsule of radius 0.046 turned about y.
struct Link {
  const char* name;
  Vector3 pos;
  double low, high, stiffness, damping;
  Vector3 capsule;
  double angle, half_length, gear;
};

constexpr std::array<Link, 3> kBack = {{
    {"bthigh", {-0.5, 0, 0}, -0.52, 1.05, 240, 6, {0.1, 0, -0.13}, -3.8, 0.145, 120},
    {"bshin", {0.16, 0, -0.25}, -0.785, 0.785, 180, 4.5, {-0.14, 0, -0.07}, -2.03, 0.15, 90},
    {"bfoot", {-0.28, 0, -0.14}, -0.4, 0.785, 120, 3, {0.03, 0, -0.097}, -0.27, 0.094, 60},
}};
constexpr std::array<Link, 3> kFront = {{
    {"fthigh", {0.5, 0, 0}, -1, 0.7, 180, 4.5, {-0.07, 0, -0.12}, 0.52, 0.133, 120},
    {"fshin", {-0.14, 0, -0.24}, -1.2, 0.87, 120, 3, {0.065, 0, -0.09}, -0.6, 0.106, 60},
    {"ffoot", {0.13, 0, -0.18}, -0.5, 0.5, 60, 1.5, {0.045, 0, -0.07}, -0.6, 0.07, 30},
}};
constexpr double kRadius = 0.046;

/// A capsule of the robot's thickness, turned by `angle` about y.
void add_turned_capsule(MjcfElement& body, std::string_view name, const Vector3& pos, double angle,
                        double half_length) {
  add_capsule(body, name, kRadius, half_length).set("pos", pos).set("axisangle", {0, 1, 0, angle});
}

void add_leg(MjcfElement& torso, MjcfElement& actuators, const std::array<Link, 3>& leg) {
  MjcfElement* parent = &torso;
  for (const Link& link : leg) {
    auto& body = add_body(*parent, link.name, link.pos);
    add_joint(body, link.name, "hinge", {0, 1, 0})
        .set("range", {link.low, link.high})
        .set("stiffness", link.stiffness)
        .set("damping", link.damping);
    add_turned_capsule(body, link.name, link.capsule, link.angle, link.half_length);
    add_motor(actuators, link.name, link.name, link.gear, 1);
    parent = &body;
  }
}

}  // namespace

std::string half_cheetah() {
  MjcfElement model("mujoco");
  model.add("compiler")
      .set("angle", "radian")
      .set("inertiafromgeom", "true")
      .set("autolimits", "false")
      .set("settotalmass", 14);
  model.add("option").set("timestep", 0.01).set("gravity", {0, 0, -9.81});
  auto& defaults = model.add("default");
  defaults.add("joint")
      .set("armature", 0.1)
      .set("damping", 0.01)
      .set("limited", "true")
      .set("stiffness", 8)
      .set("solimplimit", {0, 0.8, 0.03})
      .set("solreflimit", {0.02, 1});
  defaults.add("geom")
      .set("contype", 1)
      .set("conaffinity", 0)
      .set("condim", 3)
      .set("friction", {0.4, 0.1, 0.1})
      .set("solimp", {0, 0.8, 0.01})
      .set("solref", {0.02, 1});
  auto& world = model.add("worldbody");
  auto& actuators = model.add("actuator");
  add_plane(world, "floor", {40, 40, 40}).set("conaffinity", 1);
  auto& torso = add_body(world, "torso", {0, 0, 0.7});
  add_root_joint(torso, "rootx", "slide", {1, 0, 0});
  add_root_joint(torso, "rootz", "slide", {0, 0, 1});
  add_root_joint(torso, "rooty", "hinge", {0, 1, 0});
  add_capsule(torso, "torso", {-0.5, 0, 0}, {0.5, 0, 0}, kRadius);
  add_turned_capsule(torso, "head", {0.6, 0, 0.1}, 0.87, 0.15);
  add_leg(torso, actuators, kBack);
  add_leg(torso, actuators, kFront);
  return model.to_xml();
}

}  // namespace troupe::env::gym_models
