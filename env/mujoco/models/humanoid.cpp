#include <string>

#include "env/mujoco/models/models.h"
#include "env/mujoco/models/parts.h"

namespace troupe::env::gym_models {
namespace {

/// A hinge in degrees; what Gymnasium's file leaves to its defaults (stiffness 0, damping 1) is named all the same.
struct Hinge {
  Vector3 axis;
  double low, high, armature, stiffness, damping;
  Vector3 pos = {0, 0, 0};
};

void add_hinge(MjcfElement& body, const std::string& name, const Hinge& hinge) {
  add_joint(body, name, "hinge", hinge.axis)
      .set("pos", hinge.pos)
      .set("range", {hinge.low, hinge.high})
      .set("armature", hinge.armature)
      .set("stiffness", hinge.stiffness)
      .set("damping", hinge.damping);
}

/// `s` is -1 for the right side and 1 for the left: both are mirror images, but for the armature of hip_y and the
/// stiffness of the knee.
void add_leg(MjcfElement& pelvis, const std::string& side, double s) {
  auto& thigh = add_body(pelvis, side + "_thigh", {0, s * 0.1, -0.04});
  add_hinge(thigh, side + "_hip_x", {{-s, 0, 0}, -25, 5, 0.01, 10, 5});
  add_hinge(thigh, side + "_hip_z", {{0, 0, -s}, -60, 35, 0.01, 10, 5});
  add_hinge(thigh, side + "_hip_y", {{0, 1, 0}, -110, 20, s < 0 ? 0.008 : 0.01, 20, 5});
  add_capsule(thigh, side + "_thigh1", {0, 0, 0}, {0, -s * 0.01, -0.34}, 0.06);
  auto& shin = add_body(thigh, side + "_shin", {0, -s * 0.01, -0.403});
  add_hinge(shin, side + "_knee", {{0, -1, 0}, -160, -2, 0.006, s < 0 ? 0.0 : 1.0, 1, {0, 0, 0.02}});
  add_capsule(shin, side + "_shin1", {0, 0, 0}, {0, 0, -0.3}, 0.049);
  add_sphere(add_body(shin, side + "_foot", {0, 0, -0.45}), side + "_foot", {0, 0, 0.1}, 0.075);
}

void add_arm(MjcfElement& torso, const std::string& side, double s) {
  const double low = s < 0 ? -85 : -60, high = s < 0 ? 60 : 85;
  auto& upper = add_body(torso, side + "_upper_arm", {0, s * 0.17, 0.06});
  add_hinge(upper, side + "_shoulder1", {{2, -s, 1}, low, high, 0.0068, 1, 1});
  add_hinge(upper, side + "_shoulder2", {{0, s, 1}, low, high, 0.0051, 1, 1});
  add_capsule(upper, side + "_uarm1", {0, 0, 0}, {0.16, s * 0.16, -0.16}, 0.04);
  auto& lower = add_body(upper, side + "_lower_arm", {0.18, s * 0.18, -0.18});
  add_hinge(lower, side + "_elbow", {{0, -1, -s}, -90, 50, 0.0028, 0, 1});
  add_capsule(lower, side + "_larm", {0.01, -s * 0.01, 0.01}, {0.17, -s * 0.17, 0.17}, 0.031);
  add_sphere(lower, side + "_hand", {0.18, -s * 0.18, 0.18}, 0.04);
}

void add_figure(MjcfElement& world) {
  auto& torso = add_body(world, "torso", {0, 0, 1.4});
  add_free_joint(torso);
  add_capsule(torso, "torso1", {0, -0.07, 0}, {0, 0.07, 0}, 0.07);
  add_sphere(torso, "head", {0, 0, 0.19}, 0.09);
  add_capsule(torso, "uwaist", {-0.01, -0.06, -0.12}, {-0.01, 0.06, -0.12}, 0.06);
  auto& waist = add_body(torso, "lwaist", {-0.01, 0, -0.26}).set("quat", {1, 0, -0.002, 0});
  add_capsule(waist, "lwaist", {0, -0.06, 0}, {0, 0.06, 0}, 0.06);
  add_hinge(waist, "abdomen_z", {{0, 0, 1}, -45, 45, 0.02, 20, 5, {0, 0, 0.065}});
  add_hinge(waist, "abdomen_y", {{0, 1, 0}, -75, 30, 0.02, 10, 5, {0, 0, 0.065}});
  auto& pelvis = add_body(waist, "pelvis", {0, 0, -0.165}).set("quat", {1, 0, -0.002, 0});
  add_hinge(pelvis, "abdomen_x", {{1, 0, 0}, -35, 35, 0.02, 10, 5, {0, 0, 0.1}});
  add_capsule(pelvis, "butt", {-0.02, -0.07, 0}, {-0.02, 0.07, 0}, 0.09);
  add_leg(pelvis, "right", -1);
  add_leg(pelvis, "left", 1);
  add_arm(torso, "right", -1);
  add_arm(torso, "left", 1);
}

void add_hip_knee_tendon(MjcfElement& tendons, const std::string& side) {
  auto& tendon = tendons.add("fixed").set("name", side + "_hipknee");
  tendon.add("joint").set("joint", side + "_hip_y").set("coef", -1);
  tendon.add("joint").set("joint", side + "_knee").set("coef", 1);
}

void add_motors(MjcfElement& actuators) {
  const auto motor = [&actuators](const std::string& joint, double gear) {
    add_motor(actuators, joint, joint, gear, 0.4);
  };
  for (const char* joint : {"abdomen_y", "abdomen_z", "abdomen_x"}) motor(joint, 100);
  for (const std::string side : {"right", "left"}) {
    motor(side + "_hip_x", 100);
    motor(side + "_hip_z", 100);
    motor(side + "_hip_y", 300);
    motor(side + "_knee", 200);
  }
  for (const std::string side : {"right", "left"}) {
    for (const char* joint : {"_shoulder1", "_shoulder2", "_elbow"}) motor(side + joint, 25);
  }
}

}  // namespace

std::string humanoid() {
  MjcfElement model = make_model("degree");
  model.add("option").set("integrator", "RK4").set("solver", "PGS").set("iterations", 50).set("timestep", 0.003);
  auto& defaults = model.add("default");
  defaults.add("joint").set("armature", 1).set("damping", 1).set("limited", "true");
  defaults.add("geom").set("condim", 1).set("contype", 1).set("conaffinity", 1).set("margin", 0.001);
  auto& world = model.add("worldbody");
  add_plane(world, "floor", {20, 20, 0.125}).set("condim", 3).set("friction", {1, 0.1, 0.1});
  add_figure(world);
  auto& tendons = model.add("tendon");
  add_hip_knee_tendon(tendons, "left");
  add_hip_knee_tendon(tendons, "right");
  add_motors(model.add("actuator"));
  return model.to_xml();
}

}  // namespace troupe::env::gym_models
