#include "env/mujoco/models/models.h"
#include "env/mujoco/models/parts.h"

namespace troupe::env::gym_models {
namespace {

/// A capsule that lies along x.
void add_lying_capsule(MjcfElement& body, std::string_view name, double radius, double half_length) {
  add_capsule(body, name, radius, half_length).set("quat", {0.707, 0, 0.707, 0});
}

void set_geom_defaults(MjcfElement& defaults) {
  defaults.add("geom").set("contype", 0).set("friction", {1, 0.1, 0.1}).set("condim", 3);
}

}  // namespace

std::string inverted_pendulum() {
  MjcfElement model = make_model("degree");
  model.add("option").set("integrator", "RK4").set("timestep", 0.02).set("gravity", {0, 0, -9.81});
  auto& defaults = model.add("default");
  defaults.add("joint").set("armature", 0).set("damping", 1).set("limited", "true");
  set_geom_defaults(defaults);
  auto& world = model.add("worldbody");
  add_lying_capsule(world, "rail", 0.02, 1);
  auto& cart = add_body(world, "cart", {0, 0, 0});
  add_joint(cart, "slider", "slide", {1, 0, 0}).set("range", {-1, 1});
  add_lying_capsule(cart, "cart", 0.1, 0.1);
  auto& pole = add_body(cart, "pole", {0, 0, 0});
  add_joint(pole, "hinge", "hinge", {0, 1, 0}).set("range", {-90, 90});
  add_capsule(pole, "cpole", {0, 0, 0}, {0.001, 0, 0.6}, 0.049);
  add_motor(model.add("actuator"), "slide", "slider", 100, 3);
  return model.to_xml();
}

std::string inverted_double_pendulum() {
  MjcfElement model = make_model("degree");
  model.add("option").set("integrator", "RK4").set("timestep", 0.01).set("gravity", {1e-5, 0, -9.81});
  auto& defaults = model.add("default");
  defaults.add("joint").set("damping", 0.05).set("limited", "false");
  set_geom_defaults(defaults);
  auto& world = model.add("worldbody");
  add_plane(world, "floor", {40, 40, 40}).set("pos", {0, 0, -3});
  add_lying_capsule(world, "rail", 0.02, 1);
  auto& cart = add_body(world, "cart", {0, 0, 0});
  add_joint(cart, "slider", "slide", {1, 0, 0}).set("limited", "true").set("range", {-1, 1}).set("margin", 0.01);
  add_lying_capsule(cart, "cart", 0.1, 0.1);
  auto& pole = add_body(cart, "pole", {0, 0, 0});
  add_joint(pole, "hinge", "hinge", {0, 1, 0});
  add_capsule(pole, "cpole", {0, 0, 0}, {0, 0, 0.6}, 0.045);
  auto& pole2 = add_body(pole, "pole2", {0, 0, 0.6});
  add_joint(pole2, "hinge2", "hinge", {0, 1, 0});
  add_capsule(pole2, "cpole2", {0, 0, 0}, {0, 0, 0.6}, 0.045);
  pole2.add("site").set("name", "tip").set("pos", {0, 0, 0.6}).set("size", {0.01, 0.01});
  add_motor(model.add("actuator"), "slide", "slider", 500, 1);
  return model.to_xml();
}

}  // namespace troupe::env::gym_models
