#include "env/mujoco/mujoco_model.h"

#include <gtest/gtest.h>

#include <string>

#include "env/mujoco/mjcf.h"

namespace troupe::env {
namespace {

std::string falling_ball() {
  MjcfElement model("mujoco");
  auto& ball = model.add("worldbody").add("body").set("pos", {0, 0, 1});
  ball.add("joint").set("type", "slide").set("axis", {0, 0, 1});
  ball.add("geom").set("type", "sphere").set("size", 0.1);
  return model.to_xml();
}

class MujocoModelTest : public ::testing::Test {
 protected:
  MujocoModel model_ = compile_mjcf(falling_ball()).value();
  MujocoData data_ = make_mujoco_data(*model_).value();
};

TEST_F(MujocoModelTest, TextIsCompiledAndSteps) {
  mj_step(model_.get(), data_.get());
  EXPECT_LT(data_->qvel[0], 0);
}

TEST_F(MujocoModelTest, LoadedLibraryIsThePinnedVersion) { EXPECT_EQ(mj_version(), 3006000); }

TEST_F(MujocoModelTest, BadTextIsRefusedWithMujocosWords) {
  const auto refused = compile_mjcf("<mujoco><worldbody><geom type=\"sphere\" wrong=\"1\"/></worldbody></mujoco>");
  EXPECT_EQ(refused.error().code(), Errc::invalid_argument);
  EXPECT_NE(refused.error().message().find("wrong"), std::string::npos) << refused.error().message();
}

TEST_F(MujocoModelTest, DivergenceIsSeenOnceAndCountedAsAWarning) {
  const auto before = mujoco_warnings();
  data_->qvel[0] = 1e11;  // above what MuJoCo takes for a number
  mj_step(model_.get(), data_.get());
  EXPECT_TRUE(has_diverged(*data_));
  EXPECT_GT(mujoco_warnings(), before);
  clear_divergence(*data_);
  mj_step(model_.get(), data_.get());
  EXPECT_FALSE(has_diverged(*data_));
}

TEST_F(MujocoModelTest, HashTellsStatesApart) {
  const auto first = mujoco_state_hash(*model_, *data_);
  mj_step(model_.get(), data_.get());
  EXPECT_NE(first, mujoco_state_hash(*model_, *data_));
  mj_resetData(model_.get(), data_.get());
  EXPECT_EQ(mujoco_state_hash(*model_, *data_), first);
}

using MujocoModelDeathTest = MujocoModelTest;
TEST_F(MujocoModelDeathTest, ErrorInsideMujocoEndsTheProcess) {
  EXPECT_DEATH(mju_error("out of arena"), "out of arena");
}

}  // namespace
}  // namespace troupe::env
