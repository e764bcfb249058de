#include "tests/workers/rollout/bookkeeping/chunk_bookkeeping.h"

#include <gtest/gtest.h>

#include <vector>

namespace troupe::workers {
namespace {

using Flags = std::vector<std::uint8_t>;
using Rewards = std::vector<double>;

constexpr StepSignal kSuccess{.reward = 1, .is_terminal = true, .success = true};
constexpr StepSignal kNothing{.reward = 1};

/// The signals of one chunk, as far as the bookkeeper wants them.
ChunkRecord play(ChunkBookkeeper& book, const std::vector<StepSignal>& signals) {
  for (const auto& signal : signals) {
    if (book.wants_step()) book.step(signal);
  }
  return book.finish();
}

TEST(ChunkBookkeepingTest, TheRestOfAChunkIsNotExecutedAfterAnEnd) {
  ChunkBookkeeper book({.chunk = 3, .auto_reset = false});
  const auto row = play(book, {kNothing, kSuccess, kNothing});
  EXPECT_EQ(row.rewards, (Rewards{1, 1, 0}));
  EXPECT_EQ(row.terminated, (Flags{0, 1, 0}));
  EXPECT_EQ(row.valid, (Flags{1, 1, 0}));
  EXPECT_EQ(row.episode.episode_len, 2);
  EXPECT_TRUE(row.episode.success_at_end);
}

TEST(ChunkBookkeepingTest, ParityStepsOnAfterAnEnd) {
  ChunkBookkeeper book({.chunk = 3, .auto_reset = true, .parity = true});
  const auto row = play(book, {kNothing, kSuccess, kNothing});
  EXPECT_EQ(row.rewards, (Rewards{1, 1, 1}));
  EXPECT_EQ(row.terminated, (Flags{0, 0, 1}));
  EXPECT_EQ(row.valid, (Flags{1, 1, 1}));
  EXPECT_EQ(row.episode.episode_len, 3);
}

TEST(ChunkBookkeepingTest, AnEndedEpisodeStaysFrozenUntilTheOwnerBeginsAnother) {
  ChunkBookkeeper book({.chunk = 1, .auto_reset = false});
  play(book, {kSuccess});
  const auto frozen = play(book, {kNothing});
  EXPECT_EQ(frozen.valid, Flags{0});
  EXPECT_EQ(frozen.rewards, Rewards{0});
  EXPECT_FALSE(frozen.is_done);
  book.restart();
  EXPECT_EQ(play(book, {kNothing}).episode.episode_len, 1);
}

TEST(ChunkBookkeepingTest, AutoResetBeginsANewEpisodeWithTheNextChunk) {
  ChunkBookkeeper book({.chunk = 2, .max_episode_steps = 2});
  const auto row = play(book, {kNothing, kNothing});
  EXPECT_TRUE(row.is_done);
  EXPECT_EQ(row.truncated, (Flags{0, 1}));
  EXPECT_EQ(row.episode.episode_return, 2);
  EXPECT_EQ(book.elapsed(), 0);
}

TEST(ChunkBookkeepingTest, IgnoredTerminationsStillCountAsSuccess) {
  ChunkBookkeeper book({.chunk = 2, .auto_reset = false, .ignore_terminations = true});
  const auto row = play(book, {kSuccess, kNothing});
  EXPECT_FALSE(row.is_done);
  EXPECT_TRUE(row.episode.success_once);
  EXPECT_FALSE(row.episode.success_at_end);
}

TEST(ChunkBookkeepingTest, ARelativeRewardPaysAnAbsorbingSuccessOnce) {
  RewardShaper shaper({.coefficient = 5, .is_relative = true});
  EXPECT_EQ(shaper.shape(0), 0);
  EXPECT_EQ(shaper.shape(1), 5);
  EXPECT_EQ(shaper.shape(1), 0);
  shaper.restart();
  EXPECT_EQ(shaper.shape(1), 5);
}

TEST(ChunkBookkeepingTest, APenaltyIsTakenOffEveryStep) {
  RewardShaper shaper({.coefficient = 5, .step_penalty = 1});
  EXPECT_EQ(shaper.shape(0), -1);
  EXPECT_EQ(shaper.shape(1), 4);
}

TEST(ChunkBookkeepingTest, TheReturnMayStopAtTheFirstSuccess) {
  ChunkBookkeeper book({.chunk = 4, .auto_reset = false, .ignore_terminations = true, .return_until_success = true});
  const auto row = play(book, {kNothing, kSuccess, kNothing, kNothing});
  EXPECT_EQ(row.episode.episode_return, 2);
  EXPECT_EQ(row.episode.reward, 1);
  EXPECT_EQ(row.episode.episode_len, 4);
}

TEST(ChunkBookkeepingTest, EveryEpisodeWeighsTheSameWhoeverReportsIt) {
  EpisodeTotals many, few;
  for (int i = 0; i < 3; ++i) many.add(EpisodeMetrics{.success_once = true});
  few.add(EpisodeMetrics{.episode_len = 8});
  many.add(few);
  EXPECT_EQ(many.mean(static_cast<double>(many.success_once)), .75);
  EXPECT_EQ(many.mean(static_cast<double>(many.episode_len)), 2);
}

TEST(ChunkBookkeepingTest, ARewardModelsRewardIsMixedByItsWeight) {
  EXPECT_DOUBLE_EQ(mix_rewards(2, .75, 4, .25), 2.5);
}

}  // namespace
}  // namespace troupe::workers
