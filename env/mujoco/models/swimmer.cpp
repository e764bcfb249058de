#include "env/mujoco/models/models.h"
#include "env/mujoco/models/parts.h"

namespace troupe::env::gym_models {

/// Three links in a fluid; nothing collides.
std::string swimmer() {
  MjcfElement model = make_model("degree");
  model.add("option").set("integrator", "RK4").set("timestep", 0.01).set("density", 4000).set("viscosity", 0.1);
  auto& defaults = model.add("default");
  defaults.add("joint").set("armature", 0.1).set("limited", "false");
  defaults.add("geom").set("contype", 0).set("conaffinity", 0).set("condim", 1).set("density", 1000);
  auto& world = model.add("worldbody");
  add_plane(world, "floor", {40, 40, 0.1}).set("pos", {0, 0, -0.1}).set("condim", 3);
  auto& torso = add_body(world, "torso", {0, 0, 0});
  add_capsule(torso, "", {1.5, 0, 0}, {0.5, 0, 0}, 0.1);
  add_joint(torso, "slider1", "slide", {1, 0, 0});
  add_joint(torso, "slider2", "slide", {0, 1, 0});
  add_joint(torso, "free_body_rot", "hinge", {0, 0, 1});
  auto& mid = add_body(torso, "mid", {0.5, 0, 0});
  add_capsule(mid, "", {0, 0, 0}, {-1, 0, 0}, 0.1);
  add_joint(mid, "motor1_rot", "hinge", {0, 0, 1}).set("limited", "true").set("range", {-100, 100});
  auto& back = add_body(mid, "back", {-1, 0, 0});
  add_capsule(back, "", {0, 0, 0}, {-1, 0, 0}, 0.1);
  add_joint(back, "motor2_rot", "hinge", {0, 0, 1}).set("limited", "true").set("range", {-100, 100});
  auto& actuators = model.add("actuator");
  add_motor(actuators, "", "motor1_rot", 150, 1);
  add_motor(actuators, "", "motor2_rot", 150, 1);
  return model.to_xml();
}

}  // namespace troupe::env::gym_models
