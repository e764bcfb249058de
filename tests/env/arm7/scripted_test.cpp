#include "env/arm7/scripted.h"

#include <gtest/gtest.h>

#include "env/episode_seed.h"
#include "tests/env/arm7/solo_arm7.h"

namespace troupe::env {
namespace {

constexpr int kEpisodes = 100;

/// Episodes of the first hundred environments of a job that the script solves at some step.
int solved(Arm7Task task) {
  SoloArm7 env{std::string(enum_name(task))};
  auto script = ScriptedArm7::make(task).value();
  int count = 0;
  for (int i = 0; i < kEpisodes; ++i) {
    env.reset(episode_seed(1, i, 0)).value();
    script.reset();
    bool once = false;
    for (std::int64_t s = 0; s < env.spec().max_steps && !once; ++s) {
      env.step(script.act(env.floats(0))).value();
      once = env.success();
    }
    count += once ? 1 : 0;
  }
  return count;
}

TEST(ScriptedArm7Test, ReachesAtLeastNinetyFiveOfAHundredGoals) { EXPECT_GE(solved(Arm7Task::reach), 95); }
TEST(ScriptedArm7Test, LiftsAtLeastNinetyFiveOfAHundredCubes) { EXPECT_GE(solved(Arm7Task::lift), 95); }
TEST(ScriptedArm7Test, PlacesAtLeastNinetyOfAHundredCubes) { EXPECT_GE(solved(Arm7Task::pick_place), 90); }

TEST(ScriptedArm7Test, HasNoScriptForPush) {
  EXPECT_EQ(ScriptedArm7::make(Arm7Task::push).error().code(), Errc::invalid_argument);
}

}  // namespace
}  // namespace troupe::env
