// Experience on disk: what a resumed run of off-policy training finds again.
#include "tests/app/rl_fixture.h"

namespace troupe::app {
namespace {

using ::testing::HasSubstr;

/// Pendulum with a buffer that overflows: 128 transitions a step in items of 16, 18 of which fit.
class RlReplayTest : public RlRunTest {
 protected:
  ProgramEnd train(int steps, const Words& more = {}) const {
    return troupe(Words{"run", "rl_pendulum_sac", "job.run_root=" + (dir_ / "runs"), "rollout.commit_every=128",
                        "algorithm.sac.learning_starts=128", "algorithm.sac.updates_per_step=0.25",
                        "training.global_batch_size=32", "training.micro_batch_size=32",
                        "algorithm.sac.replay_capacity=300", "eval.episodes=1", "checkpoint.interval=2",
                        "training.steps=" + std::to_string(steps)} +
                  more);
  }
  std::size_t files() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(dir_ / "runs/latest/replay")) ++count;
    return count;
  }
};

TEST_F(RlReplayTest, ARunThatWasResumedTwiceHasAllItsExperience) {
  const ProgramEnd first = train(4);
  ASSERT_TRUE(succeeded(first));
  for (const int steps : {6, 8}) {
    const ProgramEnd next = train(steps, {"--resume", "auto"});
    ASSERT_TRUE(succeeded(next));
    EXPECT_THAT(verified("runs"), HasSubstr("produced " + std::to_string(128 * steps) + " = resident 288 + evicted " +
                                            std::to_string(128 * steps - 288) + " + lost 0; 0 records out of balance"));
  }
}

TEST_F(RlReplayTest, FilesThatNoCheckpointNeedsAreRemoved) {
  const ProgramEnd end = train(12);
  ASSERT_TRUE(succeeded(end));
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
