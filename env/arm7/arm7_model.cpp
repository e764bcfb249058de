#include "env/arm7/arm7_model.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "env/mujoco/mjcf.h"

namespace troupe::env {
namespace {

using Vec3 = std::array<double, 3>;
using Vec4 = std::array<double, 4>;

/// One of the seven links, each the child of the one before.
struct Link {
  Vec3 pos;
  Vec4 quat;
  double mass;
  Vec3 com, inertia;
  bool is_base;  ///< joints 1 to 4: stronger drives
};
constexpr double kHalfRoot = 0.7071067811865476;  // the table's .7071
constexpr Vec4 kStraight = {1, 0, 0, 0}, kDown = {kHalfRoot, -kHalfRoot, 0, 0}, kUp = {kHalfRoot, kHalfRoot, 0, 0};
constexpr std::array<Link, kArm7Joints> kLinks = {{
    {{0, 0, 0.333}, kStraight, 4.97, {0, -0.02, -0.08}, {0.07, 0.07, 0.009}, true},
    {{0, 0, 0}, kDown, 0.65, {0, -0.07, 0.003}, {0.008, 0.003, 0.007}, true},
    {{0, -0.316, 0}, kUp, 3.23, {0.03, 0.04, -0.07}, {0.037, 0.036, 0.011}, true},
    {{0.0825, 0, 0}, kUp, 3.59, {-0.05, 0.1, 0.03}, {0.026, 0.02, 0.028}, true},
    {{-0.0825, 0.384, 0}, kDown, 1.23, {-0.01, 0.04, -0.04}, {0.036, 0.029, 0.009}, false},
    {{0, 0, 0}, kUp, 1.67, {0.06, -0.014, -0.01}, {0.002, 0.004, 0.005}, false},
    {{0.088, 0, 0}, kUp, 0.74, {0.01, 0, 0.08}, {0.013, 0.01, 0.005}, false},
}};

/// The shapes with which links 1 to 6 collide and are drawn.
struct Capsule {
  std::array<double, 6> fromto;
  double radius;
};
constexpr std::array<Capsule, 6> kCapsules = {{
    {{0, 0, -0.19, 0, 0, -0.02}, 0.06},
    {{0, 0, -0.05, 0, 0, 0.05}, 0.06},
    {{0, 0, -0.18, 0, 0, -0.06}, 0.06},
    {{0, 0, -0.05, 0, 0, 0.05}, 0.055},
    {{0, 0.02, -0.24, 0, 0.06, -0.08}, 0.045},
    {{0, 0, -0.05, 0.05, 0, 0.01}, 0.05},
}};

void add_link_shape(MjcfElement& body, std::size_t link) {
  auto& geom = body.add("geom").set("name", fmt::format("link{}", link));
  if (link == 0) {
    geom.set("type", "cylinder").set("pos", {-0.02, 0, 0.07}).set("size", {0.09, 0.07});
  } else if (link <= kCapsules.size()) {
    const Capsule& shape = kCapsules[link - 1];
    geom.set("type", "capsule").set("fromto", shape.fromto).set("size", shape.radius);
  } else {
    geom.set("type", "cylinder").set("pos", {0, 0, 0.045}).set("size", {0.045, 0.05});
  }
}

void add_inertia(MjcfElement& body, double mass, const Vec3& com, const Vec3& inertia) {
  body.add("inertial").set("mass", mass).set("pos", com).set("diaginertia", inertia);
}

void add_finger(MjcfElement& hand, std::string_view name, const Vec4& quat) {
  auto& finger = hand.add("body").set("name", name).set("pos", {0, 0, 0.0584}).set("quat", quat).set("gravcomp", 1);
  add_inertia(finger, 0.03, {0, 0, 0.025}, {1e-5, 1e-5, 1e-5});
  finger.add("joint")
      .set("name", name)
      .set("type", "slide")
      .set("axis", {0, 1, 0})
      .set("range", {0, 0.04})
      .set("armature", 0.05)
      .set("damping", 20);
  finger.add("geom")
      .set("name", fmt::format("{}_pad", name))
      .set("type", "box")
      .set("pos", {0, 0.004, 0.036})
      .set("size", {0.0085, 0.004, 0.018})
      .set("friction", {1.5, 0.02, 1e-4})
      .set("condim", 4);
}

void add_arm(MjcfElement& world, MjcfElement& actuators) {
  MjcfElement* body = &world.add("body").set("name", "link0").set("childclass", "arm");
  add_link_shape(*body, 0);
  for (std::size_t i = 0; i < kLinks.size(); ++i) {
    const Link& link = kLinks[i];
    body = &body->add("body")
                .set("name", fmt::format("link{}", i + 1))
                .set("pos", link.pos)
                .set("quat", link.quat)
                .set("gravcomp", 1);
    add_inertia(*body, link.mass, link.com, link.inertia);
    const std::string joint = fmt::format("joint{}", i + 1);
    body->add("joint")
        .set("name", joint)
        .set("type", "hinge")
        .set("axis", {0, 0, 1})
        .set("range", {kArm7JointLow[i], kArm7JointHigh[i]})
        .set("armature", link.is_base ? 0.1 : 0.05)
        .set("damping", link.is_base ? 10 : 5);
    add_link_shape(*body, i + 1);
    const double force = link.is_base ? 100 : 50;
    actuators.add("position")
        .set("name", joint)
        .set("joint", joint)
        .set("kp", link.is_base ? 1000 : 300)
        .set("ctrlrange", {kArm7JointLow[i], kArm7JointHigh[i]})
        .set("forcerange", {-force, force});
  }
  auto& hand = body->add("body")
                   .set("name", "hand")
                   .set("pos", {0, 0, 0.107})
                   .set("gravcomp", 1)
                   .set("quat", {0.9238795325112867, 0, 0, -0.3826834323650898});
  add_inertia(hand, 0.73, {0, 0, 0.03}, {0.001, 0.0025, 0.0017});
  hand.add("geom").set("name", "hand").set("type", "box").set("pos", {0, 0, 0.035}).set("size", {0.02, 0.1, 0.03});
  hand.add("site").set("name", "tcp").set("pos", {0, 0, 0.1034});
  add_finger(hand, "lfinger", {1, 0, 0, 0});
  add_finger(hand, "rfinger", {0, 0, 0, 1});
  // one drive; the equality below moves the other finger
  actuators.add("position")
      .set("name", "fingers")
      .set("joint", "lfinger")
      .set("kp", 500)
      .set("ctrlrange", {kFingerClosed, kFingerOpen})
      .set("forcerange", {-30, 30});
}

void add_surroundings(MjcfElement& world, Arm7Task task) {
  world.add("geom")
      .set("name", "floor")
      .set("class", "fixed")
      .set("type", "plane")
      .set("pos", {0, 0, -0.4})
      .set("size", {0, 0, 1})
      .set("conaffinity", 2);  // for what falls from the table; the arm passes through
  world.add("geom")
      .set("name", "table")
      .set("class", "fixed")
      .set("type", "box")
      .set("pos", {0.45, 0, -0.2})
      .set("size", {0.6, 0.6, 0.2});
  if (has_cube(task)) {
    auto& cube = world.add("body").set("name", "cube").set("pos", {0.5, 0, kCubeHalf});
    cube.add("freejoint").set("name", "cube");
    cube.add("geom")
        .set("name", "cube")
        .set("class", "object")
        .set("type", "box")
        .set("size", {kCubeHalf, kCubeHalf, kCubeHalf})
        .set("mass", 0.064);
  }
  if (has_goal(task)) {
    auto& goal = world.add("body").set("name", "goal").set("mocap", "true").set("pos", {0.5, 0, 0.2});
    goal.add("geom")
        .set("name", "goal")
        .set("type", "sphere")
        .set("size", 0.02)
        .set("contype", 0)
        .set("conaffinity", 0);
  }
}

GeomKind kind_of(int type) {
  switch (type) {
    case mjGEOM_PLANE:
      return GeomKind::plane;
    case mjGEOM_SPHERE:
      return GeomKind::sphere;
    case mjGEOM_CAPSULE:
      return GeomKind::capsule;
    case mjGEOM_CYLINDER:
      return GeomKind::cylinder;
    case mjGEOM_ELLIPSOID:
      return GeomKind::ellipsoid;
    default:
      return GeomKind::box;
  }
}

RenderGeom look_of(const mjModel& model, int geom) {
  RenderGeom look;
  look.kind = kind_of(model.geom_type[geom]);
  for (std::size_t k = 0; k < 3; ++k)
    look.size[k] = static_cast<float>(model.geom_size[3 * geom + static_cast<int>(k)]);
  const std::string_view name = mj_id2name(&model, mjOBJ_GEOM, geom);
  look.label = arm7_label::robot;
  look.rgb = {0.92F, 0.92F, 0.90F};
  if (name == "hand") look.rgb = {0.80F, 0.80F, 0.82F};
  if (name.ends_with("pad")) look.rgb = {0.25F, 0.25F, 0.28F};
  if (name == "floor") look.label = arm7_label::floor, look.rgb = {0.45F, 0.47F, 0.50F}, look.is_checkered = true;
  if (name == "table") look.label = arm7_label::table, look.rgb = {0.62F, 0.50F, 0.38F};
  if (name == "cube") look.label = arm7_label::cube, look.rgb = arm7_colors()[0].rgb;
  if (name == "goal") look.label = arm7_label::goal, look.rgb = {0.10F, 0.85F, 0.35F};
  return look;
}

}  // namespace

std::string arm7_mjcf(Arm7Task task, double timestep) {
  MjcfElement model("mujoco");
  model.set("model", "arm7");
  model.add("compiler").set("angle", "radian").set("autolimits", "false");
  model.add("option")
      .set("timestep", timestep)
      .set("integrator", "Euler")
      .set("cone", "elliptic")
      .set("impratio", 10)
      .set("solver", "Newton")
      .set("iterations", 20)
      .set("tolerance", 1e-8);
  model.add("size").set("memory", "2M");
  auto& defaults = model.add("default");
  auto& arm = defaults.add("default").set("class", "arm");
  arm.add("geom").set("contype", 1).set("conaffinity", 2);
  arm.add("joint").set("limited", "true");
  defaults.add("position").set("ctrllimited", "true").set("forcelimited", "true");
  defaults.add("default").set("class", "fixed").add("geom").set("contype", 1).set("conaffinity", 3);
  defaults.add("default")
      .set("class", "object")
      .add("geom")
      .set("contype", 2)
      .set("conaffinity", 3)
      .set("condim", 4)
      .set("friction", {1, 0.02, 1e-4})
      .set("solref", {0.01, 1});
  auto& world = model.add("worldbody");
  auto& actuators = model.add("actuator");
  add_arm(world, actuators);
  add_surroundings(world, task);
  model.add("equality").add("joint").set("joint1", "rfinger").set("joint2", "lfinger").set("polycoef", {0, 1, 0, 0, 0});
  return model.to_xml();
}

Result<Arm7Model> make_arm7_model(Arm7Task task, double timestep) {
  auto compiled = compile_mjcf(arm7_mjcf(task, timestep));
  if (!compiled) return compiled.error().with(fmt::format("arm7/{}", enum_name(task)));
  Arm7Model arm;
  arm.model = std::move(compiled).value();
  arm.task = task;
  const mjModel* m = arm.model.get();
  arm.tcp_site = mj_name2id(m, mjOBJ_SITE, "tcp");
  arm.hand_body = mj_name2id(m, mjOBJ_BODY, "hand");
  arm.left_pad = mj_name2id(m, mjOBJ_GEOM, "lfinger_pad");
  arm.right_pad = mj_name2id(m, mjOBJ_GEOM, "rfinger_pad");
  arm.cube_geom = mj_name2id(m, mjOBJ_GEOM, "cube");
  if (has_goal(task)) arm.goal_mocap = m->body_mocapid[mj_name2id(m, mjOBJ_BODY, "goal")];
  for (int geom = 0; geom < static_cast<int>(m->ngeom); ++geom) {
    if (geom == arm.cube_geom) arm.drawn_cube = static_cast<int>(arm.drawn.size());
    arm.drawn.push_back(geom);
    arm.looks.push_back(look_of(*m, geom));
  }
  return arm;
}

}  // namespace troupe::env
