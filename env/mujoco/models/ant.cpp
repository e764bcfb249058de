#include <array>
#include <string>

#include "env/mujoco/models/models.h"
#include "env/mujoco/models/parts.h"

namespace troupe::env::gym_models {
namespace {

/// Leg N points along (x, y): a thigh fixed to the torso, then body aux_N with hip_N about z, then a shin with ankle_N
/// across the leg.
struct Leg {
  const char *number, *body, *hip_geom, *ankle_geom;
  double x, y;
  Vector3 ankle_axis;
  double ankle_low, ankle_high;
};

constexpr std::array<Leg, 4> kLegs = {{
    {"1", "front_left_leg", "left_leg_geom", "left_ankle_geom", 1, 1, {-1, 1, 0}, 30, 70},
    {"2", "front_right_leg", "right_leg_geom", "right_ankle_geom", -1, 1, {1, 1, 0}, -70, -30},
    {"3", "back_leg", "back_leg_geom", "third_ankle_geom", -1, -1, {-1, 1, 0}, -70, -30},
    {"4", "right_back_leg", "rightback_leg_geom", "fourth_ankle_geom", 1, -1, {1, 1, 0}, 30, 70},
}};
constexpr std::array<const char*, 4> kMotorOrder = {"4", "1", "2", "3"};
constexpr double kThigh = 0.2, kShin = 0.4, kRadius = 0.08;

void add_leg(MjcfElement& torso, const Leg& leg) {
  const Vector3 knee = {kThigh * leg.x, kThigh * leg.y, 0};
  const std::string number = leg.number, aux = "aux_" + number;
  auto& thigh = add_body(torso, leg.body, {0, 0, 0});
  add_capsule(thigh, aux + "_geom", {0, 0, 0}, knee, kRadius);
  auto& hip = add_body(thigh, aux, knee);
  add_joint(hip, "hip_" + number, "hinge", {0, 0, 1}).set("range", {-30, 30});
  add_capsule(hip, leg.hip_geom, {0, 0, 0}, knee, kRadius);
  auto& shin = add_body(hip, "", knee);
  add_joint(shin, "ankle_" + number, "hinge", leg.ankle_axis).set("range", {leg.ankle_low, leg.ankle_high});
  add_capsule(shin, leg.ankle_geom, {0, 0, 0}, {kShin * leg.x, kShin * leg.y, 0}, kRadius);
}

}  // namespace

std::string ant() {
  MjcfElement model = make_model("degree");
  model.add("option").set("integrator", "RK4").set("timestep", 0.01);
  auto& defaults = model.add("default");
  defaults.add("joint").set("armature", 1).set("damping", 1).set("limited", "true");
  defaults.add("geom")
      .set("contype", 1)
      .set("conaffinity", 0)
      .set("condim", 3)
      .set("density", 5)
      .set("friction", {1, 0.5, 0.5})
      .set("margin", 0.01);
  auto& world = model.add("worldbody");
  add_plane(world, "floor", {40, 40, 40}).set("conaffinity", 1);
  auto& torso = add_body(world, "torso", {0, 0, 0.75});
  add_free_joint(torso).set("margin", 0.01);
  add_sphere(torso, "torso_geom", {0, 0, 0}, 0.25);
  for (const Leg& leg : kLegs) add_leg(torso, leg);
  auto& actuators = model.add("actuator");
  for (const std::string number : kMotorOrder) {
    add_motor(actuators, "", "hip_" + number, 150, 1);
    add_motor(actuators, "", "ankle_" + number, 150, 1);
  }
  return model.to_xml();
}

}  // namespace troupe::env::gym_models
