// Hopper and Walker2d: one skeleton, a torso on a chain of thigh, leg and foot in the plane, once or twice.
#include <string>

#include "env/mujoco/models/models.h"
#include "env/mujoco/models/parts.h"

namespace troupe::env::gym_models {
namespace {

// Gymnasium's files hold differences of decimal numbers, not the decimals; some miss them by a rounding. The traces
// show it.
constexpr double kTorsoHalf = 0.19999999999999996, kThighHalf = 0.22500000000000003;
constexpr double kHipZ = -0.19999999999999996, kThighZ = -0.2250000000000001, kKneeZ = -0.7000000000000001;
constexpr double kFriction = 0.9;

struct Foot {
  double x, capsule_x, half_length, friction;
};

void add_root_joints(MjcfElement& torso) {
  add_root_joint(torso, "rootx", "slide", {1, 0, 0}).set("pos", {0, 0, -1.25});
  add_root_joint(torso, "rootz", "slide", {0, 0, 1}).set("pos", {0, 0, -1.25}).set("ref", 1.25);
  add_root_joint(torso, "rooty", "hinge", {0, 1, 0});
}

MjcfElement& add_link(MjcfElement& parent, const std::string& name, const Vector3& pos, const Vector3& hinge,
                      double low, double high) {
  auto& body = add_body(parent, name, pos);
  add_joint(body, name + "_joint", "hinge", {0, -1, 0}).set("pos", hinge).set("range", {low, high});
  return body;
}

void add_leg(MjcfElement& torso, MjcfElement& actuators, const std::string& suffix, const Foot& foot, double gear) {
  const auto capsule = [](MjcfElement& body, const std::string& name, double z, double radius, double half,
                          double friction) -> MjcfElement& {
    return add_capsule(body, name + "_geom", radius, half).set("pos", {0, 0, z}).set("friction", friction);
  };
  auto& thigh = add_link(torso, "thigh" + suffix, {0, 0, kHipZ}, {0, 0, 0}, -150, 0);
  capsule(thigh, "thigh" + suffix, kThighZ, 0.05, kThighHalf, kFriction);
  auto& leg = add_link(thigh, "leg" + suffix, {0, 0, kKneeZ}, {0, 0, 0.25}, -150, 0);
  capsule(leg, "leg" + suffix, 0, 0.04, 0.25, kFriction);
  auto& body = add_link(leg, "foot" + suffix, {foot.x, 0, -0.35}, {-foot.x, 0, 0.1}, -45, 45);
  capsule(body, "foot" + suffix, 0.1, 0.06, foot.half_length, foot.friction)
      .set("pos", {foot.capsule_x, 0, 0.1})
      .set("quat", {0.70710678118654757, 0, -0.70710678118654746, 0});
  for (const char* joint : {"thigh", "leg", "foot"}) add_motor(actuators, "", joint + suffix + "_joint", gear, 1);
}

MjcfElement& add_torso(MjcfElement& world) {
  auto& torso = add_body(world, "torso", {0, 0, 1.25});
  add_root_joints(torso);
  add_capsule(torso, "torso_geom", 0.05, kTorsoHalf).set("friction", kFriction);
  return torso;
}

}  // namespace

std::string hopper() {
  MjcfElement model = make_model("degree");
  model.add("option").set("integrator", "RK4").set("timestep", 0.002);
  auto& defaults = model.add("default");
  defaults.add("joint").set("armature", 1).set("damping", 1).set("limited", "true");
  defaults.add("geom")
      .set("condim", 1)
      .set("contype", 1)
      .set("conaffinity", 1)
      .set("margin", 0.001)
      .set("solimp", {0.8, 0.8, 0.01})
      .set("solref", {0.02, 1});
  auto& world = model.add("worldbody");
  auto& actuators = model.add("actuator");
  add_plane(world, "floor", {20, 20, 0.125}).set("condim", 3);
  add_leg(add_torso(world), actuators, "", {0.13, -0.065, 0.195, 2}, 200);
  return model.to_xml();
}

std::string walker2d(double right_foot_friction) {
  MjcfElement model = make_model("degree");
  model.add("option").set("integrator", "RK4").set("timestep", 0.002);
  auto& defaults = model.add("default");
  defaults.add("joint").set("armature", 0.01).set("damping", 0.1).set("limited", "true");
  defaults.add("geom")
      .set("contype", 1)
      .set("conaffinity", 0)
      .set("condim", 3)
      .set("density", 1000)
      .set("friction", {0.7, 0.1, 0.1});
  auto& world = model.add("worldbody");
  auto& actuators = model.add("actuator");
  add_plane(world, "floor", {40, 40, 40}).set("conaffinity", 1);
  auto& torso = add_torso(world);
  add_leg(torso, actuators, "", {0.2, -0.1, 0.1, right_foot_friction}, 100);
  add_leg(torso, actuators, "_left", {0.2, -0.1, 0.1, 1.9}, 100);
  return model.to_xml();
}

}  // namespace troupe::env::gym_models
