// Writers that are killed: what they finished stays, and whoever comes next goes on.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "model/io/safetensors.h"
#include "tests/workers/encoder/cache_fixture.h"

namespace troupe::workers {
namespace {

class FeatureKillTest : public CacheTest {
 protected:
  static constexpr int kEntries = 24;
  static constexpr FeatureCache::Options kSmallShards{.shard_bytes = 400,
                                                      .refresh_every = std::chrono::milliseconds(0)};

  /// A process that puts all entries and is killed at a fault point. Returns whether the fault struck.
  bool filled_until_killed(const std::string& fault) {
    const pid_t child = ::fork();
    if (child == 0) {
      if (!arm_faults(fault)) std::_Exit(2);
      {
        const auto cache = open(kSmallShards);
        for (int i = 0; i < kEntries; ++i) put(*cache, i);
      }
      std::_Exit(HasFailure() ? 1 : 0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  }
  int entries_there(FeatureCache& cache) const {
    int there = 0;
    for (int i = 0; i < kEntries; ++i) {
      const auto found = cache.find(key(i));
      if (!found) continue;
      EXPECT_EQ(found->bytes, tensor(i).bytes);
      ++there;
    }
    return there;
  }
  void expect_sound_shards() const {
    for (const std::string& path : files(".safetensors")) {
      SafetensorsReader::open(path).value();
    }
  }
};

TEST_F(FeatureKillTest, AKillLosesTheEntryThatWasBeingWrittenAndNoOther) {
  for (const char* point : {"features.data", "features.index"}) {
    for (const int skip : {0, 1, 7, kEntries - 1}) {
      SCOPED_TRACE(std::string(point) + " after " + std::to_string(skip));
      std::filesystem::remove_all(folder_.path());
      ASSERT_TRUE(filled_until_killed(std::string(point) + ":kill:1:" + std::to_string(skip)));
      const auto cache = open(kSmallShards);
      EXPECT_EQ(entries_there(*cache), skip);
      EXPECT_EQ(cache->stats().damaged, 0);
      EXPECT_THAT(files(".part"), ::testing::IsEmpty()) << "the dead writer's shard is finished";
      expect_sound_shards();
    }
  }
}

TEST_F(FeatureKillTest, AKillWhileAShardIsFinishedLosesNothing) {
  for (const char* fault :
       {"features.header:kill", "features.rename:kill", "features.header:kill:1:2", "features.rename:kill:1:2"}) {
    SCOPED_TRACE(fault);
    std::filesystem::remove_all(folder_.path());
    ASSERT_TRUE(filled_until_killed(fault));
    const auto before = open(kSmallShards);
    const int there = entries_there(*before);
    EXPECT_GT(there, 0);
    EXPECT_EQ(before->stats().entries, there);
    EXPECT_THAT(files(".part"), ::testing::IsEmpty());
    expect_sound_shards();
  }
}

TEST_F(FeatureKillTest, KilledAgainAndAgainItIsFilledInTheEnd) {
  // each process finds what those before it left, so that the same point comes later and later
  int kills = 0;
  for (int round = 0; round < kEntries; ++round) {
    const char* points[] = {"features.data:kill:1:2", "features.index:kill:1:1", "features.header:kill",
                            "features.rename:kill"};
    if (!filled_until_killed(points[round % 4])) break;
    ++kills;
  }
  EXPECT_GE(kills, 4);
  ASSERT_FALSE(filled_until_killed("features.data:kill:1:1000"));
  const auto cache = open();
  EXPECT_EQ(entries_there(*cache), kEntries);
  EXPECT_EQ(cache->stats().damaged, 0);
  EXPECT_EQ(cache->stats().entries, kEntries) << "nothing was written twice";
  expect_sound_shards();
}

}  // namespace
}  // namespace troupe::workers
