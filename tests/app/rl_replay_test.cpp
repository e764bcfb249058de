// Experience on disk: what a resumed run of off-policy training finds again.
#include "tests/app/rl_fixture.h"

namespace troupe::app {
namespace {

using ::testing::HasSubstr;

class RlReplayTest : public RlRunTest {
 protected:
  ProgramEnd train(int steps, const Words& more = {}) const {
    return troupe(
        small_sac() +
        Words{"algorithm.sac.updates_per_step=0.25", "eval.episodes=1", "training.steps=" + std::to_string(steps)} +
        more);
  }

  std::size_t files() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(dir_ / "runs/latest/replay")) ++count;
    return count;
  }
};

TEST_F(RlReplayTest, ARunThatWasResumedTwiceHasAllItsExperience) {
  ASSERT_TRUE(succeeded(train(4)));
  for (const int steps : {6, 8}) {
    ASSERT_TRUE(succeeded(train(steps, {"--resume", "auto"})));
    EXPECT_THAT(verified("runs"), HasSubstr("produced " + std::to_string(128 * steps) + " = resident 288 + evicted " +
                                            std::to_string(128 * steps - 288) + " + lost 0; 0 records out of balance"));
  }
}

TEST_F(RlReplayTest, FilesThatNoCheckpointNeedsAreRemoved) {
  ASSERT_TRUE(succeeded(train(12)));
  // three steps are resident, and those that were at a checkpoint up to four steps ago
  EXPECT_EQ(files(), 7u);
}

TEST_F(RlReplayTest, ABufferThatHoldsNoTrajectoryIsRefused) {
  const ProgramEnd end =
      train(1, {"algorithm.sac.replay_capacity=32", "rollout.steps=64", "rollout.commit_every=512", "env.blocks=1"});
  EXPECT_NE(end.exit_code, 0);
  EXPECT_THAT(end.text(), HasSubstr("algorithm.sac.replay_capacity"));
}

}  // namespace
}  // namespace troupe::app
