// What a plan says about the time of a trajectory item.
#include "app/step_times.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/durable_file.h"
#include "base/file_io.h"
#include "base/log.h"
#include "tests/support/scratch_folder.h"

namespace troupe::app {
namespace {

using ::testing::HasSubstr;

/// A job of 100 policy steps of 16 environments, with a cache of its own.
class StepTimesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    log::configure("test", "");
    ::setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1);
    job_.env.id = "CartPole-v1";
    job_.env.num_envs = 64;
    job_.env.blocks = 4;
    job_.rollout.steps = 100;
  }
  void TearDown() override { ::unsetenv("XDG_CACHE_HOME"); }
  std::string line() const { return item_line(job_, true, kept_step_time(job_)); }

  ScratchFolder cache_;
  JobConfig job_;
};

TEST_F(StepTimesTest, WithoutARunThePlanSaysThatNothingIsKnown) {
  EXPECT_EQ(line(),
            "  item          100 policy steps of 16 environments; what they take is not known: a run times it "
            "(CartPole-v1, policy mlp, this machine)\n");
}

TEST_F(StepTimesTest, ATimedStepTimesTheStepsIsTheItem) {
  keep_step_time(job_, 0.004, base::FakeClock(1.8e9));
  EXPECT_EQ(
      line(),
      "  item          100 policy steps of 16 environments, about 400 ms: 4 ms a step, timed here on 2027-01-15\n");
}

TEST_F(StepTimesTest, OtherBlocksAreScaledAndTheLineSaysSo) {
  keep_step_time(job_, 0.04, base::FakeClock(1.8e9));
  job_.env.blocks = 1;
  EXPECT_THAT(line(), HasSubstr("100 policy steps of 64 environments, about 16 s: 160 ms a step, timed here on "
                                "2027-01-15, scaled from 16 environments x 1 actions"));
}

TEST_F(StepTimesTest, AnotherEnvironmentProfileOrPolicyIsNotTimed) {
  keep_step_time(job_, 0.004, base::FakeClock(1.8e9));
  job_.env.profile = "pixel";
  EXPECT_FALSE(kept_step_time(job_));
  job_.env.profile.clear();
  job_.policy.kind = PolicyKind::flow;
  EXPECT_FALSE(kept_step_time(job_));
  job_.policy.kind = PolicyKind::mlp;
  EXPECT_TRUE(kept_step_time(job_));
}

TEST_F(StepTimesTest, AStepOfAnEnvironmentIsKeptByProfileAndOptionsWhateverThePolicy) {
  EXPECT_FALSE(kept_env_step_time(job_));
  keep_env_step_time(job_, std::nullopt, base::FakeClock(1.8e9));
  EXPECT_FALSE(kept_env_step_time(job_)) << "no run has said what a step takes";
  keep_step_time(job_, 0.004, base::FakeClock(1.8e9));
  keep_env_step_time(job_, 3e-5, base::FakeClock(1.8e9));
  job_.policy.kind = PolicyKind::flow;
  const auto timed = kept_env_step_time(job_);
  ASSERT_TRUE(timed);
  EXPECT_EQ(timed->seconds, 3e-5);
  EXPECT_EQ(timed->day, "2027-01-15");
  job_.policy.kind = PolicyKind::mlp;
  EXPECT_TRUE(kept_step_time(job_)) << "one file has both";
  job_.env.options["image_size"] = "128";
  EXPECT_FALSE(kept_env_step_time(job_));
  job_.env.options.clear();
  job_.env.profile = "pixel";
  EXPECT_FALSE(kept_env_step_time(job_));
}

TEST_F(StepTimesTest, AFileOfAnotherKindIsAsNone) {
  keep_step_time(job_, 0.004, base::FakeClock(1.8e9));
  ASSERT_TRUE(write_file_durably(cache_.path() + "/troupe/step_times.json", "[1, 2]\n"));
  EXPECT_FALSE(kept_step_time(job_));
  EXPECT_FALSE(kept_env_step_time(job_));
}

TEST_F(StepTimesTest, ABrokenFileIsWrittenAnew) {
  const std::string file = cache_.path() + "/troupe/step_times.json";
  keep_step_time(job_, 0.004, base::FakeClock(1.8e9));
  const auto whole = nlohmann::json::parse(*read_file(file));
  for (const auto& [member, broken] : std::initializer_list<std::pair<std::string, nlohmann::json>>{
           {"policy_steps", 1}, {"policy_steps", {1, 2}}, {"policy_steps", nullptr}, {"machine", 1}, {"machine", {}}}) {
    auto text = whole;
    text[member] = broken;
    ASSERT_TRUE(write_file_durably(file, text.dump()));
    EXPECT_FALSE(kept_step_time(job_)) << text;
    keep_step_time(job_, 0.004, base::FakeClock(1.8e9));
    EXPECT_TRUE(kept_step_time(job_)) << text;
  }
}

TEST_F(StepTimesTest, AnotherMachineIsNotThisOne) {
  EXPECT_EQ(item_line(job_, false, {}),
            "  item          100 policy steps of 16 environments; what they take on other machines is not known\n");
}

}  // namespace
}  // namespace troupe::app
