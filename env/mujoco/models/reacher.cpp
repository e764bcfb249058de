#include "env/mujoco/models/models.h"
#include "env/mujoco/models/parts.h"

namespace troupe::env::gym_models {

/// A two-link arm on a table with walls that collide with nothing, and a target that two slides put in its place.
std::string reacher() {
  MjcfElement model = make_model("radian");
  model.add("option").set("integrator", "RK4").set("timestep", 0.01).set("gravity", {0, 0, -9.81});
  auto& defaults = model.add("default");
  defaults.add("joint").set("armature", 1).set("damping", 1).set("limited", "true");
  defaults.add("geom").set("contype", 0).set("friction", {1, 0.1, 0.1}).set("condim", 3);
  auto& world = model.add("worldbody");
  add_plane(world, "ground", {1, 1, 10}).set("conaffinity", 0);
  const auto wall = [&world](const char* name, const Vector3& from, const Vector3& to) {
    add_capsule(world, name, from, to, 0.02).set("conaffinity", 0);
  };
  wall("sideS", {-0.3, -0.3, 0.01}, {0.3, -0.3, 0.01});
  wall("sideE", {0.3, -0.3, 0.01}, {0.3, 0.3, 0.01});
  wall("sideN", {-0.3, 0.3, 0.01}, {0.3, 0.3, 0.01});
  wall("sideW", {-0.3, -0.3, 0.01}, {-0.3, 0.3, 0.01});
  world.add("geom")
      .set("name", "root")
      .set("type", "cylinder")
      .set("fromto", {0, 0, 0, 0, 0, 0.02})
      .set("size", 0.011)
      .set("conaffinity", 0);
  auto& body0 = add_body(world, "body0", {0, 0, 0.01});
  add_joint(body0, "joint0", "hinge", {0, 0, 1}).set("limited", "false");
  add_capsule(body0, "link0", {0, 0, 0}, {0.1, 0, 0}, 0.01);
  auto& body1 = add_body(body0, "body1", {0.1, 0, 0});
  add_joint(body1, "joint1", "hinge", {0, 0, 1}).set("range", {-3, 3});
  add_capsule(body1, "link1", {0, 0, 0}, {0.1, 0, 0}, 0.01);
  add_sphere(add_body(body1, "fingertip", {0.11, 0, 0}), "fingertip", {0, 0, 0}, 0.01);
  auto& target = add_body(world, "target", {0.1, -0.1, 0.01});
  const auto slide = [&target](const char* name, const Vector3& axis, double ref) {
    add_joint(target, name, "slide", axis)
        .set("armature", 0)
        .set("damping", 0)
        .set("range", {-0.27, 0.27})
        .set("ref", ref);
  };
  slide("target_x", {1, 0, 0}, 0.1);
  slide("target_y", {0, 1, 0}, -0.1);
  add_sphere(target, "target", {0, 0, 0}, 0.009).set("conaffinity", 0);
  auto& actuators = model.add("actuator");
  add_motor(actuators, "", "joint0", 200, 1);
  add_motor(actuators, "", "joint1", 200, 1);
  return model.to_xml();
}

}  // namespace troupe::env::gym_models
