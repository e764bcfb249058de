#include <array>
#include <string>
#include <utility>

#include "env/mujoco/models/models.h"
#include "env/mujoco/models/parts.h"

namespace troupe::env::gym_models {
namespace {

/// A body of the arm, child of the one before: "r_NAME_link", with a hinge "r_NAME_joint" unless it is fixed (damping
/// 0).
struct ArmLink {
  const char* name;
  Vector3 pos, axis;
  double low, high, damping;
  const char* geom;
  Vector3 from, to;
  double radius;
  bool is_fixed() const { return damping == 0; }
};

// clang-format off
constexpr std::array<ArmLink, 8> kArm = {{
    {"shoulder_pan", {0, -0.6, 0}, {0, 0, 1}, -2.2854, 1.714602, 1, "sp", {0, 0, -0.4}, {0, 0, 0.2}, 0.1},
    {"shoulder_lift", {0.1, 0, 0}, {0, 1, 0}, -0.5236, 1.3963, 1, "sl", {0, -0.1, 0}, {0, 0.1, 0}, 0.1},
    {"upper_arm_roll", {0, 0, 0}, {1, 0, 0}, -1.5, 1.7, 0.1, "uar", {-0.1, 0, 0}, {0.1, 0, 0}, 0.02},
    {"upper_arm", {0, 0, 0}, {}, 0, 0, 0, "ua", {0, 0, 0}, {0.4, 0, 0}, 0.06},
    {"elbow_flex", {0.4, 0, 0}, {0, 1, 0}, -2.3213, 0, 0.1, "ef", {0, -0.02, 0}, {0, 0.02, 0}, 0.06},
    {"forearm_roll", {0, 0, 0}, {1, 0, 0}, -1.5, 1.5, 0.1, "fr", {-0.1, 0, 0}, {0.1, 0, 0}, 0.02},
    {"forearm", {0, 0, 0}, {}, 0, 0, 0, "fa", {0, 0, 0}, {0.291, 0, 0}, 0.05},
    {"wrist_flex", {0.321, 0, 0}, {0, 1, 0}, -1.094, 0, 0.1, "wf", {0, -0.02, 0}, {0, 0.02, 0}, 0.01},
}};
// clang-format on

std::string link_name(const ArmLink& link) { return "r_" + std::string(link.name) + "_link"; }
std::string joint_name(const ArmLink& link) { return "r_" + std::string(link.name) + "_joint"; }

void add_link(MjcfElement& body, const ArmLink& link) {
  if (!link.is_fixed()) {
    add_joint(body, joint_name(link), "hinge", link.axis)
        .set("range", {link.low, link.high})
        .set("damping", link.damping);
  }
  add_capsule(body, link.geom, link.from, link.to, link.radius);
}

/// The wrist carries a U of three capsules, the only part of the arm that touches anything, and a tip on each end.
void add_wrist(MjcfElement& forearm) {
  auto& wrist = add_body(forearm, "r_wrist_roll_link", {0, 0, 0});
  add_joint(wrist, "r_wrist_roll_joint", "hinge", {1, 0, 0}).set("range", {-1.5, 1.5}).set("damping", 0.1);
  const auto colliding = [&wrist](const Vector3& from, const Vector3& to) {
    add_capsule(wrist, "", from, to, 0.02).set("contype", 1).set("conaffinity", 1);
  };
  colliding({0, -0.1, 0}, {0, 0.1, 0});
  colliding({0, -0.1, 0}, {0.1, -0.1, 0});
  colliding({0, 0.1, 0}, {0.1, 0.1, 0});
  auto& tips = add_body(wrist, "tips_arm", {0, 0, 0});
  add_sphere(tips, "tip_arml", {0.1, -0.1, 0}, 0.01);
  add_sphere(tips, "tip_armr", {0.1, 0.1, 0}, 0.01);
}

/// A cylinder on two slides, first along y, then along x.
MjcfElement& add_puck(MjcfElement& world, const std::string& body, const std::string& joint, const Vector3& pos,
                      const Vector3& size, double density) {
  auto& puck = add_body(world, body, pos);
  for (const auto& [suffix, axis] : {std::pair<const char*, Vector3>{"_slidey", {0, 1, 0}}, {"_slidex", {1, 0, 0}}}) {
    add_joint(puck, joint + suffix, "slide", axis).set("range", {-10.3213, 10.3}).set("damping", 0.5);
  }
  return puck.add("geom").set("type", "cylinder").set("size", size).set("density", density).set("conaffinity", 0);
}

}  // namespace

std::string pusher() {
  MjcfElement model = make_model("radian");
  model.add("option").set("timestep", 0.01).set("gravity", {0, 0, 0}).set("iterations", 20);
  auto& defaults = model.add("default");
  defaults.add("joint").set("armature", 0.04).set("damping", 1).set("limited", "true");
  defaults.add("geom")
      .set("friction", {0.8, 0.1, 0.1})
      .set("density", 300)
      .set("margin", 0.002)
      .set("condim", 1)
      .set("contype", 0)
      .set("conaffinity", 0);
  auto& world = model.add("worldbody");
  add_plane(world, "table", {1, 1, 0.1}).set("pos", {0, 0.5, -0.325}).set("contype", 1).set("conaffinity", 1);
  MjcfElement* parent = &world;
  for (const ArmLink& link : kArm) {
    auto& body = add_body(*parent, link_name(link), link.pos);
    if (parent == &world) {
      add_sphere(body, "e1", {-0.06, 0.05, 0.2}, 0.05);
      add_sphere(body, "e2", {0.06, 0.05, 0.2}, 0.05);
      add_sphere(body, "e1p", {-0.06, 0.09, 0.2}, 0.03);
      add_sphere(body, "e2p", {0.06, 0.09, 0.2}, 0.03);
    }
    add_link(body, link);
    parent = &body;
  }
  add_wrist(*parent);
  add_puck(world, "object", "obj", {0.45, -0.05, -0.275}, {0.05, 0.05, 0.05}, 0.01).set("contype", 1);
  add_puck(world, "goal", "goal", {0.45, -0.05, -0.323}, {0.08, 0.001, 0.1}, 0.00001).set("contype", 0);
  auto& actuators = model.add("actuator");
  for (const ArmLink& link : kArm) {
    if (!link.is_fixed()) add_motor(actuators, "", joint_name(link), 1, 2);
  }
  add_motor(actuators, "", "r_wrist_roll_joint", 1, 2);
  return model.to_xml();
}

}  // namespace troupe::env::gym_models
