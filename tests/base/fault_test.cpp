#include "base/fault.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace troupe::base {
namespace {

/// Leaves no fault armed behind.
class FaultTest : public ::testing::Test {
 protected:
  void TearDown() override { ASSERT_TRUE(arm_faults("")); }
};

TEST_F(FaultTest, UnarmedPointsPass) { EXPECT_TRUE(fault_point("decode", "episode_000001")); }

TEST_F(FaultTest, ASubjectBelongsToTheProcessThatPassesThePoint) {
  name_fault_process("checkpointer/0#1");
  ASSERT_TRUE(
      arm_faults("write@checkpointer/0#0:fail,write@checkpointer/0#1 /tmp:fail,begin@checkpointer/0#1 step 5:fail"));
  EXPECT_TRUE(fault_point("write", "elsewhere"));
  EXPECT_FALSE(fault_point("write", "/tmp/file"));
  EXPECT_FALSE(fault_point("begin", "checkpointer/0#1 step 5")) << "the name is not repeated";
  name_fault_process("");
  EXPECT_TRUE(fault_point("write", "/tmp/file"));
}

TEST_F(FaultTest, FiresOnceUnlessACountIsGiven) {
  ASSERT_TRUE(arm_faults("decode:fail,save:fail:2"));
  const auto hit = fault_point("decode", "a.mp4");
  EXPECT_EQ(hit.error().code(), Errc::unavailable);
  EXPECT_EQ(hit.error().message(), "a.mp4: failure injected at decode");
  EXPECT_TRUE(fault_point("decode", "a.mp4"));
  EXPECT_FALSE(fault_point("save"));
  EXPECT_FALSE(fault_point("save"));
  EXPECT_TRUE(fault_point("save"));
}

TEST_F(FaultTest, PassesOverTheFirstHits) {
  ASSERT_TRUE(arm_faults("step:fail:1:2"));
  EXPECT_TRUE(fault_point("step"));
  EXPECT_TRUE(fault_point("step"));
  EXPECT_FALSE(fault_point("step"));
  EXPECT_TRUE(fault_point("step"));
}

TEST_F(FaultTest, ASubjectNarrowsItToOneActorOrFile) {
  ASSERT_TRUE(arm_faults("decode@episode_000003:fail"));
  EXPECT_TRUE(fault_point("decode", "videos/episode_000002.mp4"));
  EXPECT_TRUE(fault_point("save", "episode_000003"));
  EXPECT_FALSE(fault_point("decode", "videos/episode_000003.mp4"));
}

TEST_F(FaultTest, AFullDiskLooksLikeOne) {
  ASSERT_TRUE(arm_faults("save:enospc"));
  const auto hit = fault_point("save", "model.safetensors");
  EXPECT_EQ(hit.error().code(), Errc::resource_exhausted);
  EXPECT_NE(hit.error().message().find("No space left on device"), std::string::npos);
}

TEST_F(FaultTest, ArmingReplacesWhatWasArmed) {
  ASSERT_TRUE(arm_faults("a:fail"));
  ASSERT_TRUE(arm_faults("b:fail"));
  EXPECT_TRUE(fault_point("a"));
  EXPECT_FALSE(fault_point("b"));
}

TEST_F(FaultTest, MalformedTextIsRefusedAndArmsNothing) {
  for (const char* bad :
       {"decode", "decode:explode", "decode:fail:x", "decode:fail:1:y", "decode:fail:1:2:3", "a:fail,"}) {
    const auto armed = arm_faults(bad);
    ASSERT_FALSE(armed) << bad;
    EXPECT_EQ(armed.error().code(), Errc::invalid_argument) << bad;
  }
  EXPECT_TRUE(fault_point("decode"));
}

TEST(FaultDeathTest, KillIsASigkillToThisProcess) {
  EXPECT_EXIT(
      {
        if (!arm_faults("learner:kill")) std::_Exit(1);
        (void)fault_point("learner");
      },
      ::testing::KilledBySignal(SIGKILL), "");
}

}  // namespace
}  // namespace troupe::base
