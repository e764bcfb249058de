#include "env/mujoco/mjcf.h"

#include <gtest/gtest.h>

namespace troupe::env {
namespace {

TEST(MjcfElementTest, ChildrenAreNestedInTheOrderTheyWereAdded) {
  MjcfElement model("mujoco");
  auto& world = model.add("worldbody");
  world.add("geom");
  world.add("body").set("name", "arm").add("joint");
  EXPECT_EQ(model.to_xml(),
            "<mujoco>\n  <worldbody>\n    <geom/>\n    <body name=\"arm\">\n      <joint/>\n    </body>\n  "
            "</worldbody>\n</mujoco>\n");
}

TEST(MjcfElementTest, NumbersAreWrittenSoThatTheSameDoubleIsReadBack) {
  MjcfElement geom("geom");
  geom.set("pos", {0, -0.19999999999999996, 1e-5}).set("size", 0.1);
  EXPECT_EQ(geom.to_xml(), "<geom pos=\"0 -0.19999999999999996 1e-05\" size=\"0.1\"/>\n");
}

TEST(MjcfElementTest, SettingAnAttributeAgainReplacesIt) {
  MjcfElement joint("joint");
  joint.set("range", {-1, 1}).set("range", {-2, 2});
  EXPECT_EQ(joint.to_xml(), "<joint range=\"-2 2\"/>\n");
}

TEST(MjcfElementTest, TextIsEscaped) {
  MjcfElement body("body");
  body.set("name", "a<b>&\"c\"");
  EXPECT_EQ(body.to_xml(), "<body name=\"a&lt;b&gt;&amp;&quot;c&quot;\"/>\n");
}

TEST(MjcfElementTest, ReferencesToChildrenStayValidWhileMoreAreAdded) {
  MjcfElement world("worldbody");
  auto& first = world.add("body");
  for (int i = 0; i < 100; ++i) world.add("geom");
  first.set("name", "first");
  EXPECT_NE(world.to_xml().find("<body name=\"first\"/>"), std::string::npos);
}

}  // namespace
}  // namespace troupe::env
