#include "env/episode_seed.h"

#include <gtest/gtest.h>

#include <set>

namespace troupe::env {
namespace {

TEST(EpisodeSeedTest, DependsOnEveryPart) {
  const std::uint64_t seed = episode_seed(1, 2, 3);
  EXPECT_NE(seed, episode_seed(2, 2, 3));
  EXPECT_NE(seed, episode_seed(1, 3, 3));
  EXPECT_NE(seed, episode_seed(1, 2, 4));
  EXPECT_NE(seed, episode_seed(1, 3, 2));
  EXPECT_NE(seed, episode_seed(2, 1, 3));
}

TEST(EpisodeSeedTest, NeighbouringEnvironmentsAndEpisodesHaveSeedsOfTheirOwn) {
  std::set<std::uint64_t> seeds;
  for (std::uint64_t job = 0; job < 4; ++job) {
    for (std::int64_t env = 0; env < 64; ++env) {
      for (std::int64_t episode = 0; episode < 64; ++episode) seeds.insert(episode_seed(job, env, episode));
    }
  }
  EXPECT_EQ(seeds.size(), 4u * 64 * 64);
}

TEST(EpisodeSeedTest, IsWhatItWas) {
  // Part of what makes a run reproducible: these never change.
  EXPECT_EQ(episode_seed(0, 0, 0), 725452881274087556u);
  EXPECT_EQ(episode_seed(7, 63, std::int64_t{5} << 20), 18338293725465406002u);
}

}  // namespace
}  // namespace troupe::env
