// Experience on disk: what a resumed run of off-policy training finds again.
#include "base/file_io.h"
#include "base/hash.h"
#include "tests/app/rl_fixture.h"
#include "workers/rollout/replay/replay_log.h"

namespace troupe::app {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using workers::CollectedItem;
using workers::ReplayLog;

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

TEST_F(RlReplayTest, ExperienceOfPicturesComesBackThoughItsItemsDifferInSize) {
  const Words pictures = {"env.id=arm7/reach-v1", "env.profile=pixel",       "env.options={image_size: 40}",
                          "policy.kind=cnn",      "env.max_episode_steps=7", "algorithm.sac.updates_per_step=0.03125"};
  ASSERT_TRUE(succeeded(train(2, pictures)));
  Words again = pictures;
  again.insert(again.end(), {"--resume", "auto"});
  ASSERT_TRUE(succeeded(train(4, again)));
  EXPECT_THAT(verified("runs"),
              HasSubstr("produced 512 = resident 288 + evicted 224 + lost 0; 0 records out of balance"));
}

TEST_F(RlReplayTest, ALimitedLogGivesAResumedRunItsNewestExperience) {
  const Words limited = {"algorithm.sac.replay_capacity=3000", "algorithm.sac.replay_log_bytes=60000"};
  ASSERT_TRUE(succeeded(train(12, limited)));
  EXPECT_THAT(verified("runs"), HasSubstr("produced 1536 = resident 1536 + evicted 0 + lost 0"));
  EXPECT_EQ(files(), 4u);
  EXPECT_LE(bytes_below(dir_ / "runs/latest/replay"), 60'000);
  Words again = limited;
  again.insert(again.end(), {"--resume", "auto"});
  ASSERT_TRUE(succeeded(train(16, again)));
  // four steps came back, and four were collected
  EXPECT_THAT(verified("runs"),
              HasSubstr("produced 2048 = resident 1024 + evicted 1024 + lost 0; 0 records out of balance"));
}

TEST_F(RlReplayTest, DemonstrationsAreReplayedBesideAJobsOwnExperienceAndStayTheSame) {
  const auto record = [&](const std::string& seed) {
    std::filesystem::remove_all(dir_ / "recorded");
    return troupe({"record", "arm7/reach-v1", "--out", "recorded", "--episodes", "3", "--seed", seed});
  };
  ASSERT_TRUE(succeeded(record("3")));
  const Words demonstrated = {"env.id=arm7/reach-v1", "data.sets=recorded", "algorithm.demonstration_share=0.5"};
  ASSERT_TRUE(succeeded(train(2, demonstrated)));
  const auto replayed = curve("runs", "train/replay_buffer/demonstrations");
  ASSERT_EQ(replayed.size(), 2U);
  EXPECT_GE(replayed.begin()->second, 3 * 6) << "an episode goes on for five steps after it was solved";
  EXPECT_EQ(replayed.begin()->second, replayed.rbegin()->second);
  const Words again = demonstrated + Words{"--resume", "auto"};
  ASSERT_TRUE(succeeded(train(4, again)));
  EXPECT_THAT(verified("runs"), HasSubstr("0 records out of balance"));
  ASSERT_TRUE(succeeded(record("4")));
  const ProgramEnd end = train(6, again);
  EXPECT_NE(end.exit_code, 0);
  EXPECT_THAT(end.text(), HasSubstr("; demonstrations are "));
}

TEST_F(RlReplayTest, ALogOfAnotherLayoutIsRefused) {
  ASSERT_TRUE(succeeded(train(2)));
  const ReplayLog log(dir_ / "runs/latest/replay", 0, 1);
  std::vector<CollectedItem> items;
  const auto keep = [&](const CollectedItem& item) -> Result<void> {
    items.push_back(item);
    return {};
  };
  ASSERT_TRUE(log.read(1, 2, keep));
  for (CollectedItem& item : items) {
    item.bytes.resize(item.bytes.size() + 64);
    item.xxh3 = xxh3_64(std::span<const std::byte>(item.bytes));
  }
  ASSERT_TRUE(log.append(1, items));
  const ProgramEnd end = train(4, {"--resume", "auto"});
  EXPECT_NE(end.exit_code, 0);
  EXPECT_THAT(end.text(), AllOf(HasSubstr("/replay: trajectory 8 has "), HasSubstr("start a new run")));
}

TEST_F(RlReplayTest, ABufferThatHoldsNoTrajectoryIsRefused) {
  const ProgramEnd end =
      train(1, {"algorithm.sac.replay_capacity=32", "rollout.steps=64", "rollout.commit_every=512", "env.blocks=1"});
  EXPECT_NE(end.exit_code, 0);
  EXPECT_THAT(end.text(), HasSubstr("algorithm.sac.replay_capacity"));
}

}  // namespace
}  // namespace troupe::app
